#include "server/engine/train/backend.h"

namespace ablate::engine {

absl::Status Backend::StepBlock(absl::Span<const UpdateRequest> updates,
                                std::vector<UpdateResult>* results) {
  for (const UpdateRequest& update : updates) {
    const absl::StatusOr<UpdateResult> result = Step(update);
    if (!result.ok()) return result.status();
    results->push_back(*result);
    if (!result->made) break;
  }
  return absl::OkStatus();
}

}  // namespace ablate::engine
