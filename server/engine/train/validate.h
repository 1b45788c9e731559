// Checks of what a trainer is asked to train, before anything is allocated.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_VALIDATE_H_
#define ABLATE_SERVER_ENGINE_TRAIN_VALIDATE_H_

#include <vector>

#include "absl/status/status.h"
#include "server/engine/config.h"

namespace ablate::engine {

// INVALID_ARGUMENT naming the field, its value and what is allowed, if a run of the stack can't be
// trained or differs from the first in more than seed and optimizer numbers.
absl::Status CheckStack(const std::vector<RunConfig>& stack, bool has_cuda);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_VALIDATE_H_
