#include "server/engine/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "server/engine/analyze/torch_reader.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/sampling.h"
#include "server/engine/core/analyses/sequence_reader.h"
#include "server/engine/core/analyses/stop_strings.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/supports.h"
#include "server/engine/native/forward.h"
#include "server/engine/native/kernels.h"
#include "server/engine/task.h"
#include "server/engine/torch/device/on_stream.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/train/boundary.h"

namespace ablate::engine {
namespace {

constexpr int64_t kMaxRows = 256;
// Largest number of elements of keys and values, or of attention scores, in a group of samples.
constexpr int64_t kMaxElements = 1 << 26;

int64_t RowsAtOnce(const ModelConfig& model) {
  const int64_t context = model.context;
  const int64_t row = LooksAhead(model) ? context * context * model.heads
                                        : 2 * context * QueryWidth(model) * model.layers;
  return std::clamp<int64_t>(kMaxElements / row, 1, kMaxRows);
}

absl::Status Withdrawn() { return absl::CancelledError("the request was withdrawn"); }

std::vector<float> FloatsOf(const std::vector<absl::string_view>& pieces) {
  size_t bytes = 0;
  for (const absl::string_view piece : pieces) bytes += piece.size();
  std::vector<float> floats(bytes / sizeof(float));
  char* to = reinterpret_cast<char*>(floats.data());
  for (const absl::string_view piece : pieces) to = std::copy(piece.begin(), piece.end(), to);
  return floats;
}

// Creates readers of a number of sequences, with the checkpoint's parameters.
using ReaderMaker = std::function<std::unique_ptr<SequenceReader>(int sequences)>;

absl::StatusOr<ReaderMaker> NativeReaders(const RunConfig& config, const CheckpointTensors& read) {
  const std::vector<float> values = FloatsOf(read.parameters), buffers = FloatsOf(read.buffers);
  ASSIGN_OR_RETURN(auto made, native::NativeForward::Make(config, {values, buffers}));
  const std::shared_ptr<native::NativeForward> forward = std::move(made);
  return [forward](int sequences) { return forward->Read(sequences); };
}

ReaderMaker TorchReaders(const ModelConfig& config, const ParameterLayout& layout,
                         const CheckpointTensors& read, at::Device device) {
  const at::Tensor flat = FlatTensor(read.type, read.parameters).to(device);
  const at::Tensor buffers = FlatTensor(read.type, read.buffers).to(device);
  const auto parameters = std::make_shared<const ModelParameters>(
      BindParameters(config, layout, ParameterViews(layout, flat), buffers));
  return [&config, parameters](int sequences) {
    return MakeTorchReader(config, *parameters, sequences);
  };
}

// `config` must outlive the result.
absl::StatusOr<ReaderMaker> ReadersOf(const RunConfig& config, absl::string_view checkpoint,
                                      at::Device device) {
  const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
  ASSIGN_OR_RETURN(const CheckpointTensors read, ReadCheckpoint(layout, checkpoint));
  // A native reader allocates a whole vector of sequences, even for a few.
  const bool fits = device.is_cpu() && RowsAtOnce(config.model) >= native::kColumns;
  if (fits && WhyNoNativePass(config).empty() && read.type == TensorType::kF32) {
    return NativeReaders(config, read);
  }
  return TorchReaders(config.model, layout, read, device);
}

// Shared by all groups of samples of one request.
struct Request {
  const ModelConfig& model;
  const ReaderMaker& make_reader;
  const SampleOptions& options;
  const Opening& opening;
  const TextCodec codec;
  const size_t tokens;  // IDs that stand for text; the model may have more
  const std::atomic<bool>& stop;

  // Returns the number of tokens that a sample reads at most; it draws after the last ones.
  uint32_t MaxRead() const {
    const uint64_t read = uint64_t{opening.tokens.size()} - 1 + options.max_tokens;
    return static_cast<uint32_t>(std::min<uint64_t>(read, static_cast<uint64_t>(model.context)));
  }
};

// Draws one group of samples, from first to last token.
class Group {
 public:
  Group(const Request& request, uint32_t first, uint32_t count)
      : request_(request),
        first_(first),
        reader_(request.make_reader(static_cast<int>(count))),
        drafts_(count) {
    for (uint32_t row = 0; row < count; ++row) open_.push_back(row);
    for (Draft& draft : drafts_) {
      draft.tokens = request.opening.tokens;
      draft.hidden = request.opening.hidden;
    }
  }

  absl::StatusOr<std::vector<Draft>> Run() {
    const uint32_t length = request_.MaxRead();
    const auto given = static_cast<uint32_t>(request_.opening.tokens.size());
    for (uint32_t position = 0; position < length && !open_.empty(); ++position) {
      if (request_.stop.load()) return Withdrawn();
      logits_.resize(open_.size() * static_cast<size_t>(request_.model.vocabulary));
      reader_->Next(Inputs(position), absl::MakeSpan(logits_));
      if (position + 1 < given) continue;
      RETURN_IF_ERROR(DrawAll(position));
    }
    return std::move(drafts_);
  }

 private:
  // Returns the token of each open sample at this position.
  std::vector<uint32_t> Inputs(uint32_t position) const {
    std::vector<uint32_t> tokens;
    for (const uint32_t row : open_) tokens.push_back(drafts_[row].tokens[position]);
    return tokens;
  }

  // Draws a token for each open sample from its logits. Samples that end are closed.
  absl::Status DrawAll(uint32_t position) {
    if (!std::all_of(logits_.begin(), logits_.end(), [](double x) { return std::isfinite(x); })) {
      return absl::FailedPreconditionError(
          "the model's logits are not finite: its run diverged before this checkpoint");
    }
    const auto vocabulary = static_cast<size_t>(request_.model.vocabulary);
    const double* row = logits_.data();
    std::vector<uint32_t> open, kept;
    for (size_t i = 0; i < open_.size(); ++i, row += vocabulary) {
      const double u = UniformAt(request_.options.seed, first_ + open_[i], position);
      Draft& draft = drafts_[open_[i]];
      const uint32_t token = Draw(Keep({row, request_.tokens}, request_.options), u);
      ++draft.drawn;
      draft.ended = token == request_.opening.end;
      if (draft.ended) continue;
      draft.tokens.push_back(token);
      if (Stops(token, draft)) continue;
      open.push_back(open_[i]);
      kept.push_back(static_cast<uint32_t>(i));
    }
    if (open.size() < open_.size() && !open.empty()) reader_->Keep(kept);
    open_ = std::move(open);
    return absl::OkStatus();
  }

  // Appends a drawn token to the draft's text. Returns true if that completes a stop string.
  bool Stops(uint32_t token, Draft& draft) const {
    const std::vector<std::string>& stops = request_.options.stop;
    if (stops.empty()) return false;
    const size_t searched = draft.text.size();
    draft.text += request_.codec.BytesOf(absl::MakeConstSpan(&token, 1));
    const std::optional<StopFound> found = FindStop(draft.text, searched, stops);
    if (!found.has_value()) return false;
    draft.cut = draft.text.size() - found->begin;
    draft.stop = stops[found->which];
    return true;
  }

  const Request& request_;
  const uint32_t first_;  // index of the first sample
  const std::unique_ptr<SequenceReader> reader_;
  std::vector<Draft> drafts_;
  std::vector<uint32_t> open_;  // drafts that haven't ended, in the order of the reader's sequences
  std::vector<double> logits_;  // of the open samples, [open][vocabulary]
};

SampleWriter WriterOf(const SampledData& data, const RunConfig& config) {
  if (data.text != nullptr) return SampleWriter(*data.text);
  return SampleWriter(*data.documents, std::get<DocumentsTask>(config.task).held_out, config.seed);
}

absl::StatusOr<SampleCounts> Generate(const RunConfig& config, absl::string_view checkpoint,
                                      const SampleOptions& options, const std::atomic<bool>& stop,
                                      const std::function<void(std::vector<Sample>)>& on_samples,
                                      at::Device device) {
  RETURN_IF_ERROR(RefusalOf(CheckSampleOptions(options)));
  ASSIGN_OR_RETURN(const SampledData data, SampledDataOf(config));
  if (stop.load()) return Withdrawn();
  ASSIGN_OR_RETURN(const auto prompt, PromptOf(options, data.codec(), config.model));
  ASSIGN_OR_RETURN(const Opening opening, OpeningOf(data, prompt));
  ASSIGN_OR_RETURN(const ReaderMaker make_reader, ReadersOf(config, checkpoint, device));
  ASSIGN_OR_RETURN(const TaskShape shape, KindOf(config.task).shape(config.task));
  const auto tokens = static_cast<size_t>(shape.vocabulary);
  const Request request = {config.model, make_reader, options, opening, data.codec(), tokens, stop};
  SampleWriter writer = WriterOf(data, config);
  const auto group = static_cast<uint32_t>(RowsAtOnce(config.model));
  for (uint32_t first = 0; first < options.count; first += group) {
    ASSIGN_OR_RETURN(const auto drafts,
                     Group(request, first, std::min(group, options.count - first)).Run());
    on_samples(writer.Write(drafts));
  }
  return writer.counts();
}

}  // namespace

absl::StatusOr<SampleCounts> GenerateSamples(
    const RunConfig& config, absl::string_view checkpoint, const SampleOptions& options,
    const std::atomic<bool>& stop, const std::function<void(std::vector<Sample>)>& on_samples,
    const std::shared_ptr<Accelerator>& accelerator) {
  return AtBoundary([&] {
    const OnStream on(accelerator);
    return on([&] { return Generate(config, checkpoint, options, stop, on_samples, on.device()); });
  });
}

}  // namespace ablate::engine
