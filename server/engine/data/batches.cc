// Picks the source of batches that a task asks for.
#include "server/engine/data/batches.h"

#include <algorithm>
#include <numeric>

#include "server/engine/data/document_batches.h"
#include "server/engine/data/recall_batches.h"

namespace ablate::engine {

bool TokenBatch::uniform() const {
  return std::all_of(lengths.begin(), lengths.end(),
                     [this](int64_t real) { return real == length; });
}

uint64_t TokenBatch::tokens() const {
  return static_cast<uint64_t>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatchSource(const RunConfig& config) {
  if (config.training.batch < 1) {
    return absl::InvalidArgumentError("training.batch is 0, but must be at least 1");
  }
  if (const auto* documents = std::get_if<DocumentsTask>(&config.task)) {
    return MakeDocumentBatches(*documents, config);
  }
  return MakeLegacyRecallBatches(std::get<LegacyRecallTask>(config.task), config);
}

}  // namespace ablate::engine
