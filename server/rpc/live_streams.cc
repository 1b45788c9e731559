#include "server/rpc/live_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/rpc/call.h"

namespace ablate::rpc {

absl::Status ServerEnds() { return absl::UnavailableError("the server is shutting down"); }

LiveStreams::LiveStreams(std::string what, size_t max) : what_(std::move(what)), max_(max) {}

absl::Status LiveStreams::Add(LiveStream* stream, grpc::CallbackServerContext* context) {
  {
    MutexLock lock(&mutex_);
    if (stopped_) return ServerEnds();
    if (streams_.size() >= max_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("too many ", what_, " at once: at most ", max_, "; try again later"));
    }
    streams_[stream].context = context;
  }
  if (find_token_ == nullptr || context == nullptr) return absl::OkStatus();
  return NoteToken(stream, *context);
}

absl::Status LiveStreams::NoteToken(LiveStream* stream, const grpc::ServerContextBase& context) {
  // Twice: what ended between the first answer and the note is in the second.
  for (int i = 0; i < 2; ++i) {
    auto token = find_token_(context);
    if (!token.ok()) return token.status();
    MutexLock lock(&mutex_);
    const auto found = streams_.find(stream);
    if (found != streams_.end()) found->second.token = *std::move(token);
  }
  return absl::OkStatus();
}

void LiveStreams::EndTokens(const std::set<std::string>& tokens, const absl::Status& why) {
  MutexLock lock(&mutex_);
  for (const auto& [stream, call] : streams_) {
    if (call.context != nullptr && tokens.count(call.token) > 0) EndNow(call.context, why);
  }
}

void LiveStreams::Remove(LiveStream* stream) {
  MutexLock lock(&mutex_);
  streams_.erase(stream);
  if (streams_.empty()) gone_.SignalAll();
}

void LiveStreams::WakeAll() {
  MutexLock lock(&mutex_);
  for (const auto& [stream, call] : streams_) stream->Wake();
}

void LiveStreams::CheckPaces(absl::Duration now) {
  MutexLock lock(&mutex_);
  for (const auto& [stream, call] : streams_) stream->CheckPace(now);
}

void LiveStreams::StopAll() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  for (const auto& [stream, call] : streams_) stream->Stop();
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

Pace::Pace(const MinPace& min, size_t largest_read)
    : min_(min), timeout_(min.timeout + TimeOf(largest_read)) {}

absl::Duration Pace::TimeOf(size_t bytes) const {
  return absl::Seconds(static_cast<double>(bytes) / min_.bytes_per_second);
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
  return since_.has_value() && behind_ + (now - *since_) > timeout_;
}

std::string Pace::Terms() const {
  return absl::StrCat("at least ", absl::StrFormat("%.1f", min_.bytes_per_second / 1024),
                      " KiB a second, and may be ", absl::FormatDuration(timeout_), " behind that");
}

}  // namespace ablate::rpc
