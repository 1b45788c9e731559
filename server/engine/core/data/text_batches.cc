// Implements batches of a text task: training windows that begin anywhere in the first part, fixed
// windows of the end.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/random.h"
#include "server/engine/core/data/whole_text.h"

namespace ablate::engine {
namespace {

constexpr uint64_t kTextCursor = 0x776F646E69772D74;  // "t-window"

// Returns the windows at these starts; targets are the inputs one position later.
TokenBatch Windows(const TokenizedText& text, const std::vector<uint64_t>& starts,
                   uint64_t context) {
  TokenBatch batch;
  batch.rows = static_cast<int64_t>(starts.size());
  batch.length = static_cast<int64_t>(context);
  batch.lengths.assign(starts.size(), batch.length);
  batch.inputs.reserve(starts.size() * context);
  batch.targets.reserve(starts.size() * context);
  for (const uint64_t start : starts) {
    const uint32_t* first = text.tokens.data() + start;
    batch.inputs.insert(batch.inputs.end(), first, first + context);
    batch.targets.insert(batch.targets.end(), first + 1, first + 1 + context);
  }
  return batch;
}

// Returns batch `index` of consecutive windows from `begin` on.
TokenBatch WindowsInOrder(const TokenizedText& text, uint64_t begin, const EvaluatedWindows& read,
                          uint64_t index, uint64_t context) {
  const uint64_t first = index * read.together;
  std::vector<uint64_t> starts(std::min(read.together, read.windows - first));
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = begin + (first + i) * context;
  return Windows(text, starts, context);
}

class TextBatches : public BatchSource {
 public:
  // The split must have a start and a window.
  TextBatches(const TextTask& task, const TextSplit& split, const RunConfig& config)
      : text_(task.text),
        context_(static_cast<uint64_t>(config.model.context)),
        batch_(config.training.batch),
        starts_(split.starts),
        held_out_(split.training),
        evaluated_(WindowsToEvaluate(split, context_, config.evaluation)),
        generator_(StreamSeed(config.seed, "data/train")) {}

  TokenBatch Next() override {
    std::vector<uint64_t> starts(batch_);
    for (uint64_t& start : starts) start = generator_.Below(starts_);
    return Windows(*text_, starts, context_);
  }

  size_t HeldOutBatches() const override { return static_cast<size_t>(evaluated_.batches()); }

  TokenBatch HeldOut(size_t index) const override {
    return WindowsInOrder(*text_, held_out_, evaluated_, index, context_);
  }

  std::vector<uint64_t> Cursor() const override {
    return {kTextCursor, starts_, generator_.state()};
  }

  absl::Status SetCursor(const std::vector<uint64_t>& cursor) override {
    RETURN_IF_ERROR(CheckCursor(cursor, 3, kTextCursor, "text"));
    if (cursor[1] != starts_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the data cursor is of a text with ", cursor[1],
                       " places to begin a window, but this run has ", starts_));
    }
    generator_ = SplitMix64(cursor[2]);
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<const TokenizedText> text_;
  uint64_t context_;
  uint32_t batch_;
  uint64_t starts_;
  uint64_t held_out_;  // first evaluated token
  EvaluatedWindows evaluated_;
  SplitMix64 generator_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> MakeTextBatches(const RunConfig& config) {
  const auto& task = std::get<TextTask>(config.task);
  if (config.model.context < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.context is ", config.model.context, ", but must be at least 1"));
  }
  if (!(task.validation > 0 && task.validation < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("task.validation is ", task.validation, ", but must be above 0 and below 1"));
  }
  if (task.text == nullptr) return absl::InvalidArgumentError("task: its text was not read");
  const TextSplit split = SplitText(task.text->tokens.size(), task.validation,
                                    static_cast<uint64_t>(config.model.context));
  if (split.starts == 0 || split.windows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", split.training, " tokens to train on and ", split.validation,
                     " to validate on, but model.context ", config.model.context, " needs ",
                     config.model.context + 1, " of each"));
  }
  return std::make_unique<TextBatches>(task, split, config);
}

std::vector<TokenBatch> TextBatchesOf(const TokenizedText& text, int64_t context) {
  const auto length = static_cast<uint64_t>(context);
  const EvaluatedWindows all = {text.tokens.empty() ? 0 : (text.tokens.size() - 1) / length,
                                kEvaluatedTogether};
  std::vector<TokenBatch> batches;
  for (uint64_t index = 0; index < all.batches(); ++index) {
    batches.push_back(WindowsInOrder(text, 0, all, index, length));
  }
  return batches;
}

}  // namespace ablate::engine
