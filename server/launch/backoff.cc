// Exponential back-off of restarts.
#include "server/launch/backoff.h"

#include <algorithm>

namespace ablate::launch {

absl::Duration RestartDelay(absl::Duration previous, absl::Duration lived) {
  if (lived >= kHealthyLife || previous <= absl::ZeroDuration()) return kFirstRestart;
  return std::min(previous * 2, kLongestRestart);
}

}  // namespace ablate::launch
