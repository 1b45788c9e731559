#include "server/engine/native/reader.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/engine/core/data/batches.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/key_value_cache.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/sequence_pass.h"

namespace ablate::engine::native {
namespace {

ModelConfig WithLoss(ModelConfig config, LossPositions loss) {
  config.loss = loss;
  return config;
}

// Sets to[v] to the logit of token v in a column of [vocabulary][columns].
void CopyColumn(const float* logits, int columns, int column, absl::Span<double> to) {
  for (size_t v = 0; v < to.size(); ++v) {
    to[v] = logits[static_cast<int64_t>(v) * columns + column];
  }
}

class CachedReader : public SequenceReader {
 public:
  CachedReader(const ModelConfig& config, const Model& model, int sequences, const Kernels& kernels)
      : config_(WithLoss(config, LossPositions::kAll)),
        model_(model),
        pass_(config_, setting_, LearningRule::kBackprop, kernels),
        cache_(config_, RoundUp(sequences)) {
    columns_.past = &cache_;
    columns_.count = columns_.tokens = RoundUp(sequences);
    for (int s = 0; s < sequences; ++s) column_.push_back(s);
  }

  void Next(absl::Span<const uint32_t> tokens, absl::Span<double> logits) override {
    const auto count = static_cast<size_t>(columns_.count);
    // Columns without a sequence repeat another one's token.
    columns_.token.assign(count, static_cast<int32_t>(tokens.front()));
    columns_.position.assign(count, cache_.length());
    for (size_t s = 0; s < tokens.size(); ++s) {
      columns_.token[static_cast<size_t>(column_[s])] = static_cast<int32_t>(tokens[s]);
    }
    const float* const all = pass_.Logits(model_, columns_);
    cache_.Lengthen();
    const auto vocabulary = static_cast<size_t>(config_.vocabulary);
    for (size_t s = 0; s < tokens.size(); ++s) {
      CopyColumn(all, columns_.count, column_[s], logits.subspan(s * vocabulary, vocabulary));
    }
  }

  void Keep(absl::Span<const uint32_t> sequences) override {
    std::vector<int> kept;
    for (const uint32_t s : sequences) kept.push_back(column_[s]);
    column_ = std::move(kept);
    Shrink(RoundUp(static_cast<int>(column_.size())));
  }

 private:
  // Moves sequences after the first `count` columns to free columns among these.
  void Shrink(int count) {
    if (count == columns_.count) return;
    std::vector<bool> taken(static_cast<size_t>(columns_.count));
    for (const int column : column_) taken[static_cast<size_t>(column)] = true;
    int free = 0;
    for (int& column : column_) {
      if (column < count) continue;
      while (taken[static_cast<size_t>(free)]) ++free;
      cache_.Copy(column, free);
      column = free++;
    }
    columns_.count = columns_.tokens = count;
  }

  const ModelConfig config_;
  const Model& model_;
  const PassSetting setting_;
  SequencePass pass_;
  KeyValueCache cache_;
  Columns columns_;
  std::vector<int> column_;  // by sequence
};

class PrefixReader : public SequenceReader {
 public:
  PrefixReader(const ModelConfig& config, const Model& model, int sequences, const Kernels& kernels)
      : config_(WithLoss(config, LossPositions::kLast)),
        model_(model),
        pass_(config_, setting_, LearningRule::kBackprop, kernels),
        prefixes_(static_cast<size_t>(sequences)) {}

  void Next(absl::Span<const uint32_t> tokens, absl::Span<double> logits) override {
    for (size_t s = 0; s < tokens.size(); ++s) prefixes_[s].push_back(tokens[s]);
    const TokenBatch batch = Batch();
    const auto vocabulary = static_cast<size_t>(config_.vocabulary);
    for (const Columns& columns :
         CutIntoColumns(batch, 0, batch.rows, LossPositions::kLast, kTogether)) {
      const float* const all = pass_.Logits(model_, columns);
      const int count = static_cast<int>(columns.target.size());
      for (size_t s = 0; s < columns.sequences.size(); ++s) {
        const auto row = static_cast<size_t>(columns.sequences[s].row);
        CopyColumn(all, count, static_cast<int>(s), logits.subspan(row * vocabulary, vocabulary));
      }
    }
  }

  void Keep(absl::Span<const uint32_t> sequences) override {
    std::vector<std::vector<int64_t>> kept;
    for (const uint32_t s : sequences) kept.push_back(std::move(prefixes_[s]));
    prefixes_ = std::move(kept);
  }

 private:
  TokenBatch Batch() const {
    TokenBatch batch;
    batch.rows = static_cast<int64_t>(prefixes_.size());
    batch.length = static_cast<int64_t>(prefixes_.front().size());
    for (const std::vector<int64_t>& prefix : prefixes_) {
      batch.inputs.insert(batch.inputs.end(), prefix.begin(), prefix.end());
    }
    batch.lengths.assign(prefixes_.size(), batch.length);
    batch.targets.assign(prefixes_.size(), TokenBatch::kIgnored);
    return batch;
  }

  const ModelConfig config_;
  const Model& model_;
  const PassSetting setting_;
  SequencePass pass_;
  std::vector<std::vector<int64_t>> prefixes_;  // by sequence
};

}  // namespace

std::unique_ptr<SequenceReader> MakeReader(const ModelConfig& config, const Model& model,
                                           int sequences, const Kernels& kernels) {
  if (LooksAhead(config)) {
    return std::make_unique<PrefixReader>(config, model, sequences, kernels);
  }
  return std::make_unique<CachedReader>(config, model, sequences, kernels);
}

}  // namespace ablate::engine::native
