#include "server/engine/data/batches.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/task.h"

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
  return KindOf(config.task).batches(config);
}

}  // namespace ablate::engine
