// Writes and reads a run's resume state, a safetensors file with everything that the next update
// depends on. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_RESUME_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_RESUME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/core/layout.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

// The contents of a resume state.
struct ResumeState {
  RunTensors tensors;            // of the backend, or views into the file
  std::vector<uint64_t> cursor;  // of the run's batch source
  uint32_t step = 0;
  Outcome outcome = Outcome::kTraining;
  std::optional<double> first_evaluation;  // held-out loss at step 0
};

// The run that a state must belong to.
struct ResumeIdentity {
  const RunConfig& run;
  const ParameterLayout& layout;
  const BackendIdentity& backend;
};

absl::StatusOr<std::string> WriteResumeState(const ResumeIdentity& identity,
                                             const ResumeState& state);

// Returns INVALID_ARGUMENT if `file` is malformed; FAILED_PRECONDITION if it is a state of another
// trainer, numerics version or environment, or of a run with another layout, precision, optimizer
// or seed. `file` must outlive the result.
absl::StatusOr<ResumeState> ReadResumeState(const ResumeIdentity& identity, absl::string_view file);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_RESUME_H_
