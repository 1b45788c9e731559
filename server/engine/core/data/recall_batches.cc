// Implements batches of the tasks that generate their data: legacy_recall and recall.
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

// Draws `draw` distinct keys out of `keys`.
class KeyDrawer {
 public:
  KeyDrawer(int keys, int draw)
      : keys_(static_cast<size_t>(keys)), swapped_(static_cast<size_t>(draw)) {
    std::iota(keys_.begin(), keys_.end(), int64_t{0});
  }

  // Calls `take(i, key)` for the i-th key drawn, i in [0, draw). Uses a partial Fisher–Yates
  // shuffle, undone afterwards so that a draw depends on the generator's state alone.
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
  std::vector<size_t> swapped_;  // the index that key i was swapped with
};

// Describes a task whose sequences are generated.
struct Generated {
  absl::string_view name;  // in errors
  uint64_t cursor = 0;     // first word of its cursors
  int64_t length = 0;      // tokens of a sequence
  // Writes the tokens of a sequence to a zeroed row, and returns its label.
  std::function<int64_t(SplitMix64& generator, int64_t* row)> fill;
};

// Generates training and held-out batches, from one stream each.
class GeneratedBatches : public BatchSource {
 public:
  GeneratedBatches(Generated task, const RunConfig& config)
      : task_(std::move(task)),
        batch_(config.training.batch),
        generator_(StreamSeed(config.seed, "data/train")) {
    SplitMix64 held_out(StreamSeed(config.seed, "data/held_out"));
    for (uint32_t i = 0; i < config.evaluation.batches; ++i)
      held_out_.push_back(Generate(held_out));
  }

  TokenBatch Next() override { return Generate(generator_); }

  size_t HeldOutBatches() const override { return held_out_.size(); }

  TokenBatch HeldOut(size_t index) const override { return held_out_[index]; }

  std::vector<uint64_t> Cursor() const override { return {task_.cursor, generator_.state()}; }

  absl::Status SetCursor(const std::vector<uint64_t>& cursor) override {
    const absl::Status ours = CheckCursor(cursor, 2, task_.cursor, task_.name);
    if (ours.ok()) generator_ = SplitMix64(cursor[1]);
    return ours;
  }

 private:
  TokenBatch Generate(SplitMix64& generator) {
    TokenBatch batch;
    batch.rows = batch_;
    batch.length = task_.length;
    batch.lengths.assign(static_cast<size_t>(batch_), task_.length);
    batch.targets.resize(static_cast<size_t>(batch_));
    batch.inputs.assign(static_cast<size_t>(batch_ * task_.length), 0);
    int64_t* row = batch.inputs.data();
    for (int64_t& label : batch.targets) {
      label = task_.fill(generator, row);
      row += task_.length;
    }
    return batch;
  }

  Generated task_;
  int64_t batch_;
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
  // A row is the context, token 0 (as in the original program, which never fills that position),
  // the query.
  const auto fill = [drawer = KeyDrawer(task.keys, task.draw), query = task.draw](
                        SplitMix64& generator, int64_t* row) mutable {
    int64_t label = 0;
    drawer.Draw(generator, [&](size_t i, int64_t key) {
      if (i == 0) {
        label = key;
      } else {
        row[i - 1] = key;
      }
    });
    return row[query] = label;
  };
  constexpr uint64_t kCursor = 0x6C6C616365722D6C;  // "l-recall"
  return std::make_unique<GeneratedBatches>(
      Generated{"legacy recall", kCursor, task.draw + 1, fill}, config);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeRecallBatches(const RunConfig& config) {
  const auto& task = std::get<RecallTask>(config.task);
  if (task.attributes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("task.attributes is ", task.attributes, ", but must be at least 1"));
  }
  if (task.pairs < 1 || task.pairs > task.entities) {
    return absl::InvalidArgumentError(absl::StrCat("task.pairs is ", task.pairs,
                                                   ", but must be 1 to task.entities, which is ",
                                                   task.entities));
  }
  const auto pairs = static_cast<size_t>(task.pairs);
  const auto attributes = static_cast<uint64_t>(task.attributes);
  const int64_t first_entity = int64_t{task.entities} * task.attributes;
  const int64_t first_attribute = first_entity + task.entities;
  const auto fill = [=, drawer = KeyDrawer(task.entities, task.pairs)](SplitMix64& generator,
                                                                       int64_t* row) mutable {
    drawer.Draw(generator, [&](size_t i, int64_t entity) {
      row[i] = entity * task.attributes + static_cast<int64_t>(generator.Below(attributes));
    });
    const int64_t asked = row[generator.Below(pairs)];
    row[pairs] = first_entity + asked / task.attributes;
    return first_attribute + asked % task.attributes;
  };
  constexpr uint64_t kCursor = 0x6C6C616365722D65;  // "e-recall"
  return std::make_unique<GeneratedBatches>(Generated{"recall", kCursor, task.pairs + 1, fill},
                                            config);
}

}  // namespace ablate::engine
