// A run's checkpoint of a step, or its last one.
#ifndef ABLATE_SERVER_SERVICE_CHECKPOINTS_H_
#define ABLATE_SERVER_SERVICE_CHECKPOINTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/store.h"

namespace ablate::service {

// `run` is an id; without a step the last checkpoint that there is. NOT_FOUND lists the steps that
// there are; FAILED_PRECONDITION if the last one is asked for and there is none.
absl::StatusOr<storage::ArtifactRecord> FindCheckpoint(storage::Store* store,
                                                       const std::string& run,
                                                       std::optional<uint32_t> step);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CHECKPOINTS_H_
