#include "server/analysis/samples.h"

#include <chrono>
#include <memory>
#include <utility>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "server/config/fields.h"
#include "server/experiment/analysis_time.h"
#include "server/lookup/errors.h"
#include "server/rpc/blob_streams.h"

namespace ablate::analysis {
namespace {

// Interval between checks whether anybody still waits.
constexpr std::chrono::milliseconds kCancelCheck{200};

// Checks the prompt's length, because it goes to the worker as it is. Only the worker can check
// that the data has its characters, how many tokens a tokenizer makes of it, and that the model has
// its ids.
absl::Status CheckPrompt(const engine::SampleOptions& options, const v1::BaseSpec& spec) {
  constexpr uint32_t kMostCharactersPerToken = 64;
  engine::ModelConfig config;
  config.context = static_cast<int>(spec.model().context());
  const std::string* tokenizer = spec::TokenizerOf(spec.task()).name;
  const bool stored = tokenizer != nullptr && *tokenizer == spec::kStoredTokens;
  const uint32_t longest = engine::LongestPrompt(config);
  if (options.prompt_ids.size() > longest) {
    return lookup::InvalidField(
        "prompt_ids", absl::StrCat("it has ", options.prompt_ids.size(), " ids"),
        absl::StrCat("at most ", longest, ", one less than the model's context"));
  }
  const uint32_t max = longest * (stored ? kMostCharactersPerToken : 1);
  const absl::string_view prompt = options.prompt;
  size_t characters = 0;
  for (absl::string_view rest = prompt; !rest.empty(); ++characters) {
    const size_t bytes = text::CharacterLength(rest);
    if (bytes == 0) {
      return lookup::InvalidField("prompt",
                                  absl::StrCat("not UTF-8 at byte ", prompt.size() - rest.size()),
                                  "text in UTF-8");
    }
    rest.remove_prefix(bytes);
  }
  if (characters <= max) return absl::OkStatus();
  return lookup::InvalidField(
      "prompt", absl::StrCat("it has ", characters, " characters"),
      stored ? absl::StrCat("at most ", max)
             : absl::StrCat("at most ", max, ", one less than the model's context"));
}

worker::v1::SamplesOptions ToWorker(const engine::SampleOptions& options) {
  worker::v1::SamplesOptions message;
  message.set_count(options.count);
  message.set_temperature(options.temperature);
  message.set_top_k(options.top_k);
  message.set_top_p(options.top_p);
  message.set_seed(options.seed);
  message.set_prompt(options.prompt);
  message.set_max_tokens(options.max_tokens);
  message.mutable_stop()->Assign(options.stop.begin(), options.stop.end());
  message.mutable_prompt_ids()->Assign(options.prompt_ids.begin(), options.prompt_ids.end());
  return message;
}

// Receives an analysis's results from callbacks, for the thread that waits.
class Outcome {
 public:
  void Add(const worker::v1::AnalysisPart& part) {
    MutexLock lock(&mutex_);
    for (const worker::v1::Sample& sample : part.samples()) {
      set_.samples.push_back({sample.index(),
                              sample.text(),
                              sample.tokens(),
                              sample.ended(),
                              sample.in_training_data(),
                              {sample.token_ids().begin(), sample.token_ids().end()},
                              sample.stop()});
    }
  }

  void End(const absl::StatusOr<worker::v1::AnalysisResult>& result) {
    MutexLock lock(&mutex_);
    status_ = result.status();
    if (result.ok()) {
      set_.counts = {result->samples().distinct(), result->samples().in_training_data()};
    }
    ended_ = true;
    changed_.Signal();
  }

  // Waits a little; returns false if it has not ended.
  bool WaitALittle() {
    MutexLock lock(&mutex_);
    if (!ended_) changed_.WaitFor(&mutex_, kCancelCheck);
    return ended_;
  }

  // Returns the result, once it has ended.
  absl::StatusOr<SampleSet> Take() {
    MutexLock lock(&mutex_);
    if (!status_.ok()) return ExplainSamplesError(status_);
    return std::move(set_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  SampleSet set_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::Status CheckSamplesOptions(const engine::SampleOptions& options) {
  std::vector<spec::Problem> problems;
  for (const engine::OptionProblem& problem : engine::CheckSampleOptions(options)) {
    problems.push_back(
        reflect::MakeProblem(problem.field, problem.value, problem.complaint, problem.allowed));
  }
  return problems.empty() ? absl::OkStatus() : lookup::InvalidFields(problems);
}

absl::StatusOr<schedule::AnalysisRequest> PrepareSamples(storage::Store* store,
                                                         const SampledModel& model,
                                                         const engine::SampleOptions& options) {
  RETURN_IF_ERROR(CheckSamplesOptions(options));
  RETURN_IF_ERROR(CheckPrompt(options, model.spec.spec()));
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(store));
  schedule::AnalysisRequest request;
  for (const std::string& sha256 : {model.checkpoint_blob, model.dataset_blob}) {
    ASSIGN_OR_RETURN(auto pin, blobs->Find(sha256));
    request.blobs.push_back(std::move(pin));
  }
  request.on_gpu = model.parameters >= spec::kGpuAnalysisParameters;
  worker::v1::Analyze& message = request.message;
  message.set_checkpoint_blob(model.checkpoint_blob);
  message.set_dataset_blob(model.dataset_blob);
  *message.mutable_spec() = model.spec;
  *message.mutable_samples() = ToWorker(options);
  return request;
}

absl::Status ExplainSamplesError(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  for (const char* const field : {"prompt", "prompt_ids"}) {
    if (!absl::StartsWith(status.message(), absl::StrCat(field, ": "))) continue;
    spec::Problem problem;
    problem.field = field;
    problem.message = std::string(status.message());
    return lookup::InvalidFields({problem});
  }
  return status;
}

absl::StatusOr<SampleSet> MakeSamples(storage::Store* store, schedule::Analyses* analyses,
                                      const SamplesQuery& query,
                                      const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(const auto model, FindSampledRun(store, query.run, query.step));
  ASSIGN_OR_RETURN(auto request, PrepareSamples(store, model, query.options));
  const auto answer = std::make_shared<Outcome>();
  request.part = [answer](const worker::v1::AnalysisPart& part) { answer->Add(part); };
  request.done = [answer](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
    answer->End(result);
  };
  ASSIGN_OR_RETURN(const auto id, analyses->Submit(std::move(request)));
  while (!answer->WaitALittle()) {
    if (cancelled()) analyses->Cancel(id);  // this ends it
  }
  absl::StatusOr<SampleSet> set = answer->Take();
  if (!set.ok()) return set;
  set->step = model.step;
  set->are_documents = model.spec.spec().task().has_documents();
  return set;
}

}  // namespace ablate::analysis
