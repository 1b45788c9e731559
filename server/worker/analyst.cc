// Fetches what an analysis reads, computes it and reports it.
#include "server/worker/analyst.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/worker/run_setup.h"

namespace ablate::worker {
namespace {

constexpr uint64_t kDataSetCacheBytes = 64 << 20;
constexpr size_t kLongestMessage = 2000;

engine::SampleOptions OptionsOf(const v1::SamplesOptions& message) {
  engine::SampleOptions options;
  options.count = message.count();
  options.temperature = message.temperature();
  options.top_k = message.top_k();
  options.top_p = message.top_p();
  options.seed = message.seed();
  options.prompt = message.prompt();
  return options;
}

v1::FromWorker PartOf(const std::string& id, std::vector<engine::Sample> samples) {
  v1::FromWorker message;
  message.mutable_analysis_part()->set_id(id);
  for (engine::Sample& from : samples) {
    v1::Sample& sample = *message.mutable_analysis_part()->add_samples();
    sample.set_index(from.index);
    sample.set_text(std::move(from.text));
    sample.set_tokens(from.tokens);
    sample.set_ended(from.ended);
    sample.set_in_training_data(from.in_training_data);
  }
  return message;
}

v1::FromWorker FailureOf(const std::string& id, const absl::Status& status) {
  v1::FromWorker message;
  message.mutable_analysis_failed()->set_id(id);
  message.mutable_analysis_failed()->set_code(static_cast<uint32_t>(status.code()));
  message.mutable_analysis_failed()->set_message(
      reflect::ShortText(status.message(), kLongestMessage));
  return message;
}

}  // namespace

Analyst::Analyst(AnalystActions actions, BlobChannel* blobs)
    : actions_(std::move(actions)),
      blobs_(blobs),
      data_sets_(blobs, kDataSetCacheBytes),
      thread_([this] { Work(); }) {}

Analyst::~Analyst() {
  CancelAll();
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void Analyst::WaitUntilReady() {
  MutexLock lock(&mutex_);
  while (preparing_) changed_.Wait(&mutex_);
}

void Analyst::Start(v1::Analyze analyze) {
  MutexLock lock(&mutex_);
  jobs_.emplace_back().analyze = std::move(analyze);
  changed_.SignalAll();
}

void Analyst::Cancel(const std::string& id) {
  MutexLock lock(&mutex_);
  for (Job& job : jobs_) {
    if (job.analyze.id() == id) job.control.Abandon();
  }
}

void Analyst::CancelAll() {
  MutexLock lock(&mutex_);
  for (Job& job : jobs_) job.control.Abandon();
}

void Analyst::Work() {
  const absl::Status prepared = actions_.prepare();
  if (!prepared.ok()) actions_.lost(prepared);
  {
    MutexLock lock(&mutex_);
    preparing_ = false;
    changed_.SignalAll();
  }
  if (!prepared.ok()) return;
  while (Job* const job = Next()) {
    v1::FromWorker end;
    const absl::Status made = Make(*job, &end);
    {
      MutexLock lock(&mutex_);
      jobs_.pop_front();
    }
    actions_.send(std::move(end));
    if (absl::IsUnavailable(made)) return actions_.lost(made);
  }
}

Analyst::Job* Analyst::Next() {
  MutexLock lock(&mutex_);
  while (jobs_.empty() && !quit_) changed_.Wait(&mutex_);
  return quit_ ? nullptr : &jobs_.front();
}

absl::Status Analyst::Make(Job& job, v1::FromWorker* end) {
  const std::string& id = job.analyze.id();
  absl::StatusOr<v1::SamplesResult> result =
      job.analyze.has_samples()
          ? MakeSamples(job)
          : absl::UnimplementedError("this worker knows samples only, not what was asked");
  const absl::Status made = result.status();
  if (job.control.abandoned()) result = absl::CancelledError("the request was withdrawn");
  if (!result.ok()) {
    *end = FailureOf(id, result.status());
    return made;
  }
  end->mutable_analysis_result()->set_id(id);
  *end->mutable_analysis_result()->mutable_samples() = *std::move(result);
  return absl::OkStatus();
}

absl::StatusOr<v1::SamplesResult> Analyst::MakeSamples(Job& job) {
  const v1::Analyze& analyze = job.analyze;
  const absl::StatusOr<engine::RunConfig> config =
      ReadConfig(analyze.spec(), {analyze.id(), analyze.dataset_blob()}, &data_sets_, job.control);
  if (!config.ok()) return config.status();
  const absl::StatusOr<std::string> checkpoint =
      blobs_->Read(analyze.id(), analyze.checkpoint_blob(), job.control);
  if (!checkpoint.ok()) return checkpoint.status();
  const auto counts =
      actions_.generate(*config, *checkpoint, OptionsOf(analyze.samples()), job.control.stop(),
                        [&](std::vector<engine::Sample> samples) {
                          if (!job.control.abandoned())
                            actions_.send(PartOf(analyze.id(), std::move(samples)));
                        });
  if (!counts.ok()) return counts.status();
  v1::SamplesResult result;
  result.set_distinct(counts->distinct);
  result.set_in_training_data(counts->in_training_data);
  return result;
}

}  // namespace ablate::worker
