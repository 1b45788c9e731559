// The streams that are open: how many there may be, and how to reach them when something happens.
#include "server/service/live_streams.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::service {

absl::Status ServerEnds() { return absl::UnavailableError("the server is shutting down"); }

LiveStreams::LiveStreams(std::string what, size_t most) : what_(std::move(what)), most_(most) {}

absl::Status LiveStreams::Add(LiveStream* stream) {
  MutexLock lock(&mutex_);
  if (stopped_) return ServerEnds();
  if (streams_.size() >= most_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many ", what_, " at once: at most ", most_, "; try again later"));
  }
  streams_.insert(stream);
  return absl::OkStatus();
}

void LiveStreams::Remove(LiveStream* stream) {
  MutexLock lock(&mutex_);
  streams_.erase(stream);
  if (streams_.empty()) gone_.SignalAll();
}

void LiveStreams::WakeAll() {
  MutexLock lock(&mutex_);
  for (LiveStream* stream : streams_) stream->Wake();
}

void LiveStreams::LookAtAll(absl::Duration now) {
  MutexLock lock(&mutex_);
  for (LiveStream* stream : streams_) stream->Look(now);
}

void LiveStreams::StopAll() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  for (LiveStream* stream : streams_) stream->Stop();
}

void LiveStreams::WaitUntilGone(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(&mutex_);
  while (!streams_.empty()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    gone_.WaitFor(&mutex_, left);
  }
}

}  // namespace ablate::service
