// Batches of the legacy recall task, generated from the run's seed.
#ifndef ABLATE_SERVER_ENGINE_DATA_RECALL_BATCHES_H_
#define ABLATE_SERVER_ENGINE_DATA_RECALL_BATCHES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/data/batches.h"

namespace ablate::engine {

// `config` is the run that `task` belongs to. Errors as MakeBatchSource.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeLegacyRecallBatches(const LegacyRecallTask& task,
                                                                     const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_RECALL_BATCHES_H_
