// Growing waits with jitter.
#include "server/worker/backoff.h"

#include <algorithm>

namespace ablate::worker {

Backoff::Backoff(absl::Duration first, absl::Duration longest)
    : first_(first), longest_(longest), wait_(first), random_(std::random_device()()) {}

absl::Duration Backoff::Next() {
  const double share = std::uniform_real_distribution<double>(.5, 1)(random_);
  const absl::Duration result = wait_ * share;
  wait_ = std::min(wait_ * 1.5, longest_);
  return result;
}

}  // namespace ablate::worker
