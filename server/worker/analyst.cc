#include "server/worker/analyst.h"

#include <utility>

#include "base/status_macros.h"
#include "proto/reflect/text.h"

namespace ablate::worker {
namespace {

constexpr uint64_t kAnalystCacheBytes = 64 << 20;
constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kPartBytes = 1 << 20;

engine::SampleOptions OptionsOf(const v1::SamplesOptions& message) {
  engine::SampleOptions options;
  options.count = message.count();
  options.temperature = message.temperature();
  options.top_k = message.top_k();
  options.top_p = message.top_p();
  options.seed = message.seed();
  options.prompt = message.prompt();
  if (message.has_max_tokens()) options.max_tokens = message.max_tokens();
  options.stop = {message.stop().begin(), message.stop().end()};
  options.prompt_ids = {message.prompt_ids().begin(), message.prompt_ids().end()};
  return options;
}

// Returns samples as messages of about kPartBytes each, because the server limits a message.
std::vector<v1::FromWorker> PartsOf(const std::string& id, std::vector<engine::Sample> samples) {
  std::vector<v1::FromWorker> parts;
  size_t bytes = kPartBytes;
  for (engine::Sample& from : samples) {
    if (bytes >= kPartBytes) {
      parts.emplace_back().mutable_analysis_part()->set_id(id);
      bytes = 0;
    }
    bytes += from.text.size() + from.token_ids.size() * sizeof(uint32_t);
    v1::Sample& sample = *parts.back().mutable_analysis_part()->add_samples();
    sample.set_index(from.index);
    sample.set_text(std::move(from.text));
    sample.set_tokens(from.tokens);
    sample.set_ended(from.ended);
    sample.set_in_training_data(from.in_training_data);
    sample.mutable_token_ids()->Assign(from.token_ids.begin(), from.token_ids.end());
    sample.set_stop(std::move(from.stop));
  }
  return parts;
}

v1::FromWorker FailureOf(const std::string& id, const absl::Status& status) {
  v1::FromWorker message;
  message.mutable_analysis_failed()->set_id(id);
  message.mutable_analysis_failed()->set_code(static_cast<uint32_t>(status.code()));
  message.mutable_analysis_failed()->set_message(
      reflect::ShortText(status.message(), kMaxMessageBytes));
  return message;
}

}  // namespace

Analyst::Analyst(AnalysisTools tools, BlobChannel* blobs, std::function<void(v1::FromWorker)> send)
    : tools_(std::move(tools)),
      blobs_(blobs),
      send_(std::move(send)),
      data_sets_(blobs, kAnalystCacheBytes) {}

absl::Status Analyst::Execute(const v1::Analyze& analyze, RunControl& control) {
  absl::StatusOr<std::optional<v1::AnalysisResult>> result = Make(analyze, control);
  const absl::Status made = result.status();
  if (tools_.release) tools_.release();
  if (control.abandoned()) {
    ReportWithdrawn(analyze.id());
  } else if (!result.ok()) {
    send_(FailureOf(analyze.id(), result.status()));
  } else if (result->has_value()) {
    v1::FromWorker end;
    *end.mutable_analysis_result() = **std::move(result);
    end.mutable_analysis_result()->set_id(analyze.id());
    send_(std::move(end));
  }
  // The blob channel never returns UNAVAILABLE.
  return absl::IsUnavailable(made) ? made : absl::OkStatus();
}

absl::StatusOr<std::optional<v1::AnalysisResult>> Analyst::Make(const v1::Analyze& analyze,
                                                                RunControl& control) {
  v1::AnalysisResult end;
  if (analyze.has_samples()) {
    ASSIGN_OR_RETURN(*end.mutable_samples(), MakeSamples(analyze, control));
    return end;
  }
  if (!analyze.has_computation()) {
    return absl::UnimplementedError("this worker does not know the analysis that was asked for");
  }
  ASSIGN_OR_RETURN(
      auto computed,
      MakeComputation(analyze.id(), analyze.computation(),
                      {tools_.make, blobs_, &data_sets_, send_, tools_.pace}, control));
  if (!computed.has_value()) return std::nullopt;
  *end.mutable_computation() = *std::move(computed);
  return end;
}

void Analyst::ReportWithdrawn(const std::string& id) {
  send_(FailureOf(id, absl::CancelledError("the request was withdrawn")));
}

absl::StatusOr<v1::SamplesResult> Analyst::MakeSamples(const v1::Analyze& analyze,
                                                       RunControl& control) {
  ASSIGN_OR_RETURN(
      engine::RunConfig config,
      ReadConfig(analyze.spec(), {analyze.id(), analyze.dataset_blob()}, &data_sets_, control));
  // Those of this worker, whatever trained the model.
  config.device = engine::Device::kCpu;
  config.precision = engine::Precision::kFloat32;
  ASSIGN_OR_RETURN(const SharedBytes checkpoint,
                   blobs_->Read(analyze.id(), analyze.checkpoint_blob(), control));
  const auto report = [&](std::vector<engine::Sample> samples) {
    if (control.abandoned()) return;
    for (v1::FromWorker& part : PartsOf(analyze.id(), std::move(samples))) send_(std::move(part));
  };
  ASSIGN_OR_RETURN(const auto counts,
                   tools_.generate(config, checkpoint.view(), OptionsOf(analyze.samples()),
                                   control.stop(), report));
  v1::SamplesResult result;
  result.set_distinct(counts.distinct);
  result.set_in_training_data(counts.in_training_data);
  return result;
}

}  // namespace ablate::worker
