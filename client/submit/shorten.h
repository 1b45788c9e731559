// Shortens an experiment for a trial.
#ifndef ABLATE_CLIENT_SUBMIT_SHORTEN_H_
#define ABLATE_CLIENT_SUBMIT_SHORTEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"

namespace ablate::client {

// The outcome of shortening an experiment.
struct ShortenedSpec {
  std::vector<std::string> left_out;  // in words, such as "checkpoint 50"
  std::vector<int> analyses;          // index in the spec before, for each entry that is left
};

// Sets training.steps of `spec`, and leaves out what lies beyond: checkpoints, steps of analyses,
// analyses without any step, of which trajectory needs three, and a primary metric that is a number
// of such an analysis. A longer warmup ends with the run. INVALID_ARGUMENT if an axis varies the
// number of steps, and for a program.
absl::StatusOr<ShortenedSpec> Shorten(uint32_t steps, v1::ExperimentSpec* spec);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_SHORTEN_H_
