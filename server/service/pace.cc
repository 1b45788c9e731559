// How long the other end of a stream may keep it waiting: a place is others' when it is held for
// nothing.
#include "server/service/pace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ablate::service {

void Pace::Wait(absl::Duration now) {
  MutexLock lock(&mutex_);
  since_ = now;
}

void Pace::Went(size_t bytes, absl::Duration now) {
  MutexLock lock(&mutex_);
  if (!since_.has_value()) return;
  const absl::Duration earned = absl::Seconds(static_cast<double>(bytes) / least_.bytes_per_second);
  behind_ = std::max(absl::ZeroDuration(), behind_ + (now - *since_) - earned);
  since_.reset();
}

bool Pace::TooSlow(absl::Duration now) const {
  MutexLock lock(&mutex_);
  return since_.has_value() && behind_ + (now - *since_) > least_.patience;
}

std::string Pace::Terms() const {
  return absl::StrCat("at least ", absl::StrFormat("%.1f", least_.bytes_per_second / 1024),
                      " KiB a second, after a wait of at most ",
                      absl::FormatDuration(least_.patience));
}

}  // namespace ablate::service
