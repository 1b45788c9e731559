// How long the other end of a stream may keep it waiting: a place is others' when it is held for
// nothing.
#include "server/service/pace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ablate::service {

Pace::Pace(const LeastPace& least, size_t largest_read)
    : least_(least), patience_(least.patience + TimeOf(largest_read)) {}

absl::Duration Pace::TimeOf(size_t bytes) const {
  return absl::Seconds(static_cast<double>(bytes) / least_.bytes_per_second);
}

void Pace::Write(size_t bytes, absl::Duration now) { Begin(TimeOf(bytes), now); }
void Pace::Written(absl::Duration now) { End(absl::ZeroDuration(), now); }
void Pace::Read(absl::Duration now) { Begin(absl::ZeroDuration(), now); }
void Pace::HasRead(size_t bytes, absl::Duration now) { End(TimeOf(bytes), now); }

void Pace::Begin(absl::Duration earned, absl::Duration now) {
  MutexLock lock(&mutex_);
  behind_ -= earned;
  since_ = now;
}

void Pace::End(absl::Duration earned, absl::Duration now) {
  MutexLock lock(&mutex_);
  if (!since_.has_value()) return;
  behind_ = std::max(absl::ZeroDuration(), behind_ + (now - *since_) - earned);
  since_.reset();
}

bool Pace::TooSlow(absl::Duration now) const {
  MutexLock lock(&mutex_);
  return since_.has_value() && behind_ + (now - *since_) > patience_;
}

std::string Pace::Terms() const {
  return absl::StrCat("at least ", absl::StrFormat("%.1f", least_.bytes_per_second / 1024),
                      " KiB a second, and may be ", absl::FormatDuration(patience_),
                      " behind that");
}

}  // namespace ablate::service
