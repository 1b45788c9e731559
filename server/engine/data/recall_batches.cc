#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/data/batches.h"
#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

constexpr uint64_t kCursorKind = 0x6C6C616365722D6C;  // "l-recall"

// Draws `draw` distinct keys at a time.
class KeyDrawer {
 public:
  KeyDrawer(int keys, int draw)
      : keys_(static_cast<size_t>(keys)), swapped_(static_cast<size_t>(draw)) {
    std::iota(keys_.begin(), keys_.end(), int64_t{0});
  }

  // Calls `take(i, key)` for the i-th key drawn, i in [0, draw). A partial Fisher–Yates shuffle,
  // undone afterwards so that a draw depends on the generator's state alone.
  template <typename Take>
  void Draw(SplitMix64& generator, Take take) {
    for (size_t i = 0; i < swapped_.size(); ++i) {
      swapped_[i] = i + generator.Below(keys_.size() - i);
      std::swap(keys_[i], keys_[swapped_[i]]);
      take(i, keys_[i]);
    }
    for (size_t i = swapped_.size(); i-- > 0;) std::swap(keys_[i], keys_[swapped_[i]]);
  }

 private:
  std::vector<int64_t> keys_;
  std::vector<size_t> swapped_;  // what key i was swapped with
};

// Sequences of distinct keys in which the label is the query itself.
class LegacyRecallBatches : public BatchSource {
 public:
  LegacyRecallBatches(const LegacyRecallTask& task, const RunConfig& config)
      : length_(task.draw + 1),
        batch_(config.training.batch),
        drawer_(task.keys, task.draw),
        generator_(StreamSeed(config.seed, "data/train")) {
    SplitMix64 held_out(StreamSeed(config.seed, "data/held_out"));
    for (uint32_t i = 0; i < config.evaluation.batches; ++i)
      held_out_.push_back(Generate(held_out));
  }

  TokenBatch Next() override { return Generate(generator_); }

  const std::vector<TokenBatch>& HeldOut() override { return held_out_; }

  std::vector<uint64_t> Cursor() const override { return {kCursorKind, generator_.state()}; }

  absl::Status SetCursor(const std::vector<uint64_t>& cursor) override {
    if (cursor.size() != 2 || cursor[0] != kCursorKind) {
      return absl::InvalidArgumentError("the data cursor is not one of a legacy recall task");
    }
    generator_ = SplitMix64(cursor[1]);
    return absl::OkStatus();
  }

 private:
  // A row is the context, token 0 (left over from the source, which never fills that position), the
  // query.
  TokenBatch Generate(SplitMix64& generator) {
    TokenBatch batch;
    batch.rows = batch_;
    batch.length = length_;
    batch.lengths.assign(static_cast<size_t>(batch_), length_);
    batch.targets.resize(static_cast<size_t>(batch_));
    batch.inputs.assign(static_cast<size_t>(batch_ * length_), 0);
    int64_t* row = batch.inputs.data();
    for (int64_t& label : batch.targets) {
      drawer_.Draw(generator, [&](size_t i, int64_t key) {
        if (i == 0) {
          label = key;
        } else {
          row[i - 1] = key;
        }
      });
      row[length_ - 1] = label;
      row += length_;
    }
    return batch;
  }

  int64_t length_;
  int64_t batch_;
  KeyDrawer drawer_;
  SplitMix64 generator_;
  std::vector<TokenBatch> held_out_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> MakeLegacyRecallBatches(const RunConfig& config) {
  const auto& task = std::get<LegacyRecallTask>(config.task);
  if (task.draw < 1 || task.draw > task.keys) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.draw is ", task.draw, ", but must be 1 to task.keys, which is ", task.keys));
  }
  return std::make_unique<LegacyRecallBatches>(task, config);
}

}  // namespace ablate::engine
