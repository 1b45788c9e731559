// How long to wait before a worker that ended is started again.
#ifndef ABLATE_SERVER_LAUNCH_BACKOFF_H_
#define ABLATE_SERVER_LAUNCH_BACKOFF_H_

#include "absl/time/time.h"

namespace ablate::launch {

inline constexpr absl::Duration kFirstRestart = absl::Milliseconds(100);
inline constexpr absl::Duration kLongestRestart = absl::Seconds(30);
inline constexpr absl::Duration kHealthyLife = absl::Minutes(1);

// The wait before the next start of a worker that lived for `lived` and had been waited for
// `previous` (zero: never). Doubles from kFirstRestart to kLongestRestart; a healthy life starts
// over.
absl::Duration RestartDelay(absl::Duration previous, absl::Duration lived);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_BACKOFF_H_
