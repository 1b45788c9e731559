// A run's checkpoint of a step, or its last one.
#include "server/service/checkpoints.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "server/service/errors.h"

namespace ablate::service {

absl::StatusOr<storage::ArtifactRecord> FindCheckpoint(storage::Store* store,
                                                       const std::string& run,
                                                       std::optional<uint32_t> step) {
  const auto artifacts = store->ListArtifacts(run);
  if (!artifacts.ok()) return artifacts.status();
  if (!step && !artifacts->empty()) return artifacts->back();  // by ascending step
  if (!step) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("run ", run, " has no checkpoint (yet)")),
        "NO_CHECKPOINT");
  }
  std::string steps;
  for (const storage::ArtifactRecord& artifact : *artifacts) {
    if (artifact.step == *step) return artifact;
    absl::StrAppend(&steps, steps.empty() ? "; it has steps " : ", ", artifact.step);
  }
  return WithReason(
      absl::NotFoundError(absl::StrCat("run ", run, " has no checkpoint of step ", *step, steps)),
      "ARTIFACT_NOT_FOUND");
}

}  // namespace ablate::service
