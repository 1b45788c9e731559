#include "server/engine/samples.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/analyze/sampling.h"
#include "server/engine/layout.h"
#include "server/engine/model/transformer.h"
#include "server/engine/task.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/checkpoint.h"

namespace ablate::engine {
namespace {

constexpr int64_t kMaxRows = 256;
// Of keys and values, or of attention scores, that a group of samples may hold.
constexpr int64_t kMaxElements = 1 << 26;

absl::Status Withdrawn() { return absl::CancelledError("the request was withdrawn"); }

// The Decoder's counterpart for models that look ahead: every token changes all positions, so the
// whole prefix is read again.
class PrefixReader {
 public:
  PrefixReader(const ModelConfig& config, const ModelParameters& parameters, int64_t rows)
      : config_(config), parameters_(parameters), tokens_(at::empty({rows, 0}, at::kLong)) {
    config_.loss = LossPositions::kLast;
  }

  at::Tensor Next(const at::Tensor& tokens) {
    const at::NoGradGuard no_grad;
    tokens_ = at::cat({tokens_, tokens.unsqueeze(1)}, 1);  // [B, T]
    StackBatch batch;
    batch.runs = 1;
    batch.rows = tokens_.size(0);
    batch.length = tokens_.size(1);
    batch.tokens = tokens_.reshape({1, -1});                        // [1, B·T]
    return Logits(config_, parameters_, batch, Pass()).squeeze(0);  // [B, V]
  }

  void Keep(const at::Tensor& rows) { tokens_ = tokens_.index_select(0, rows); }

 private:
  ModelConfig config_;
  const ModelParameters& parameters_;
  at::Tensor tokens_;  // [B, T]
};

// What every group of samples of one request has in common.
struct Request {
  const ModelConfig& model;
  const ModelParameters& parameters;
  const SampleOptions& options;
  const Opening& opening;
  const std::atomic<bool>& stop;
};

// One group of samples, first to last token.
template <typename Reader>
class Group {
 public:
  Group(const Request& request, uint32_t first, uint32_t count)
      : request_(request),
        first_(first),
        reader_(request.model, request.parameters, count),
        drafts_(count) {
    for (uint32_t row = 0; row < count; ++row) open_.push_back(row);
    for (Draft& draft : drafts_) {
      draft.tokens = request.opening.tokens;
      draft.hidden = request.opening.hidden;
    }
  }

  absl::StatusOr<std::vector<Draft>> Run() {
    const auto context = static_cast<uint32_t>(request_.model.context);
    const auto given = static_cast<uint32_t>(request_.opening.tokens.size());
    for (uint32_t position = 0; position < context && !open_.empty(); ++position) {
      if (request_.stop.load()) return Withdrawn();
      const at::Tensor scores = reader_.Next(Inputs(position));
      if (position + 1 < given) continue;
      absl::Status drawn = DrawAll(scores.to(at::kDouble).contiguous(), position);
      if (!drawn.ok()) return drawn;
    }
    return std::move(drafts_);
  }

 private:
  // The token of each open sample at this position.
  at::Tensor Inputs(uint32_t position) const {
    at::Tensor tokens = at::empty({static_cast<int64_t>(open_.size())}, at::kLong);
    int64_t* to = tokens.mutable_data_ptr<int64_t>();
    for (const uint32_t row : open_) *to++ = drafts_[row].tokens[position];
    return tokens;
  }

  // scores [B, V] of the open samples. Those that end are read no further.
  absl::Status DrawAll(const at::Tensor& scores, uint32_t position) {
    if (!scores.isfinite().all().item<bool>()) {
      return absl::FailedPreconditionError(
          "the model's scores are not finite: its run diverged before this checkpoint");
    }
    const auto vocabulary = static_cast<size_t>(scores.size(1));
    const double* row = scores.const_data_ptr<double>();
    std::vector<uint32_t> open;
    std::vector<int64_t> kept;
    for (size_t i = 0; i < open_.size(); ++i, row += vocabulary) {
      const double u = UniformAt(request_.options.seed, first_ + open_[i], position);
      Draft& draft = drafts_[open_[i]];
      const uint32_t token = Draw(Keep({row, vocabulary}, request_.options), u);
      ++draft.drawn;
      draft.ended = token == request_.opening.end;
      if (draft.ended) continue;
      draft.tokens.push_back(token);
      open.push_back(open_[i]);
      kept.push_back(static_cast<int64_t>(i));
    }
    if (open.size() < open_.size() && !open.empty()) reader_.Keep(at::tensor(kept, at::kLong));
    open_ = std::move(open);
    return absl::OkStatus();
  }

  const Request& request_;
  const uint32_t first_;  // index of the first sample
  Reader reader_;
  std::vector<Draft> drafts_;
  std::vector<uint32_t> open_;  // drafts that have not ended, as the reader's rows
};

int64_t RowsAtOnce(const ModelConfig& model) {
  const int64_t context = model.context;
  const int64_t row = model.attention.causal ? 2 * context * model.width * model.layers
                                             : context * context * model.heads;
  return std::clamp<int64_t>(kMaxElements / row, 1, kMaxRows);
}

absl::StatusOr<std::vector<Draft>> DrawGroup(const Request& request, uint32_t first,
                                             uint32_t count) {
  if (request.model.attention.causal) return Group<Decoder>(request, first, count).Run();
  return Group<PrefixReader>(request, first, count).Run();
}

// The data of the run's task, which what is drawn is written in.
absl::StatusOr<SampledData> DataOf(const RunConfig& config) {
  SampledData data;
  if (const auto* documents = std::get_if<DocumentsTask>(&config.task)) {
    data.documents = documents->documents.get();
  } else if (const auto* text = std::get_if<TextTask>(&config.task)) {
    data.text = text->text.get();
  } else {
    return absl::FailedPreconditionError(
        "the run's task has no text: its tokens are numbers without a meaning");
  }
  const absl::StatusOr<TaskShape> shape = KindOf(config.task).shape(config.task);
  if (!shape.ok()) return shape.status();
  if (shape->vocabulary == config.model.vocabulary) return data;
  return absl::InvalidArgumentError(absl::StrCat(
      "the data has ", shape->vocabulary, " tokens, but the model has ", config.model.vocabulary));
}

SampleWriter WriterOf(const SampledData& data, const RunConfig& config) {
  if (data.text != nullptr) return SampleWriter(*data.text);
  return SampleWriter(*data.documents, std::get<DocumentsTask>(config.task).held_out, config.seed);
}

absl::Status CheckOptions(const SampleOptions& options) {
  const std::vector<OptionProblem> problems = CheckSampleOptions(options);
  if (problems.empty()) return absl::OkStatus();
  const OptionProblem& first = problems.front();
  return absl::InvalidArgumentError(
      absl::StrCat(first.field, ": ", first.complaint, "; allowed: ", first.allowed));
}

absl::StatusOr<SampleCounts> Generate(const RunConfig& config, absl::string_view checkpoint,
                                      const SampleOptions& options, const std::atomic<bool>& stop,
                                      const std::function<void(std::vector<Sample>)>& on_samples) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  const absl::StatusOr<SampledData> data = DataOf(config);
  if (!data.ok()) return data.status();
  if (stop.load()) return Withdrawn();
  const absl::StatusOr<Opening> opening =
      OpeningOf(*data, options.prompt, LongestPrompt(config.model));
  if (!opening.ok()) return opening.status();
  const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
  const absl::StatusOr<CheckpointTensors> read = ReadCheckpoint(layout, checkpoint);
  if (!read.ok()) return read.status();
  const at::Tensor flat = FlatTensor(read->type, read->parameters).unsqueeze(0);  // [1, P]
  const at::Tensor buffers = FlatTensor(read->type, read->buffers).unsqueeze(0);
  const ModelParameters parameters =
      BindParameters(config.model, layout, ParameterViews(layout, flat), buffers);
  const Request request = {config.model, parameters, options, *opening, stop};
  SampleWriter writer = WriterOf(*data, config);
  const auto group = static_cast<uint32_t>(RowsAtOnce(config.model));
  for (uint32_t first = 0; first < options.count; first += group) {
    const auto drafts = DrawGroup(request, first, std::min(group, options.count - first));
    if (!drafts.ok()) return drafts.status();
    on_samples(writer.Write(*drafts));
  }
  return writer.counts();
}

}  // namespace

absl::StatusOr<SampleCounts> GenerateSamples(
    const RunConfig& config, absl::string_view checkpoint, const SampleOptions& options,
    const std::atomic<bool>& stop, const std::function<void(std::vector<Sample>)>& on_samples) {
  return AtBoundary([&] { return Generate(config, checkpoint, options, stop, on_samples); });
}

}  // namespace ablate::engine
