// Whether a lane has its core to itself.
#ifndef ABLATE_SERVER_WORKER_CONTENTION_H_
#define ABLATE_SERVER_WORKER_CONTENTION_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::worker {

// How long the calling thread, since it began, was ready to run while others had the core. Zero
// where the kernel doesn't count it; what a hypervisor gives to other machines is never counted.
absl::Duration RunQueueDelay();

// The same, out of the text of a schedstat file: nanoseconds run, nanoseconds waited, time slices.
absl::Duration ParseRunQueueDelay(absl::string_view schedstat);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_CONTENTION_H_
