// Reads the time left of a worker that another scheduler, such as Slurm, started.
#ifndef ABLATE_SERVER_WORKER_PILOT_H_
#define ABLATE_SERVER_WORKER_PILOT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::worker {

// Reads the time left as Slurm's `squeue -o %L` prints it: [DAYS-]HOURS:MINUTES:SECONDS,
// MINUTES:SECONDS or SECONDS. Nothing for UNLIMITED, NOT_SET, INVALID and an empty text.
// INVALID_ARGUMENT for another one.
absl::StatusOr<std::optional<absl::Duration>> ParseTimeLeft(absl::string_view text);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_PILOT_H_
