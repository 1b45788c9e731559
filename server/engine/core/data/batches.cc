#include "server/engine/core/data/batches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/core/layout.h"
#include "server/engine/task.h"

namespace ablate::engine {

bool TokenBatch::uniform() const {
  return std::all_of(lengths.begin(), lengths.end(),
                     [this](int64_t real) { return real == length; });
}

uint64_t TokenBatch::tokens() const {
  return static_cast<uint64_t>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
}

TokenBatch TokenBatch::Rows(int64_t first, int64_t count) const {
  TokenBatch part;
  part.rows = count;
  part.lengths.assign(lengths.begin() + first, lengths.begin() + first + count);
  part.length = *std::max_element(part.lengths.begin(), part.lengths.end());
  // Copies each row up to the batch's longest length; targets may be one per row.
  const auto copy = [&](const std::vector<int64_t>& from, std::vector<int64_t>* to) {
    const int64_t width = static_cast<int64_t>(from.size()) / rows;
    for (int64_t row = first; row < first + count; ++row) {
      const auto begin = from.begin() + row * width;
      to->insert(to->end(), begin, begin + std::min(width, part.length));
    }
  };
  copy(inputs, &part.inputs);
  copy(targets, &part.targets);
  return part;
}

bool CanStandardise(const RunConfig& config, const TokenBatch& batch) {
  if (config.model.norm.kind != NormKind::kBatch || !HasNorm(config.model)) return true;
  const int64_t micro_batches = config.training.accumulation, rows = batch.rows / micro_batches;
  for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    const auto first = batch.lengths.begin() + micro_batch * rows;
    if (std::accumulate(first, first + rows, int64_t{0}) == 1) return false;
  }
  return true;
}

std::optional<std::vector<TokenBatch>> BatchSource::FirstHeldOut(uint64_t sequences,
                                                                 uint64_t most_tokens) const {
  std::vector<TokenBatch> batches;
  uint64_t tokens = 0;
  for (size_t index = 0; index < HeldOutBatches() && sequences > 0; ++index) {
    TokenBatch batch = HeldOut(index);
    const auto rows = static_cast<uint64_t>(batch.rows);
    if (rows > sequences) batch = batch.Rows(0, static_cast<int64_t>(sequences));
    sequences -= std::min(sequences, rows);
    tokens += batch.tokens();
    if (tokens > most_tokens) return std::nullopt;
    batches.push_back(std::move(batch));
  }
  return batches;
}

absl::Status CheckCursor(const std::vector<uint64_t>& cursor, size_t words, uint64_t tag,
                         absl::string_view task) {
  if (cursor.size() == words && cursor[0] == tag) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the data cursor is not one of a ", task, " task"));
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatchSource(const RunConfig& config) {
  if (config.training.batch < 1) {
    return absl::InvalidArgumentError("training.batch is 0, but must be at least 1");
  }
  return KindOf(config.task).batches(config);
}

}  // namespace ablate::engine
