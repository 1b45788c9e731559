#include "server/rpc/live_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/lookup/errors.h"
#include "server/rpc/call.h"

namespace ablate::rpc {
namespace {

absl::Status TookTooLong(absl::string_view what, absl::Duration max_time) {
  return absl::DeadlineExceededError(
      absl::StrCat(what, ": longer than ", absl::FormatDuration(max_time),
                   ", the limit of a user's call on a shared server. Call again to continue"));
}

}  // namespace

absl::Status ServerEnds() { return absl::UnavailableError("the server is shutting down"); }

LiveStreams::LiveStreams(std::string what, lookup::Limit max, absl::Duration max_time)
    : what_(std::move(what)), max_(max), max_time_(max_time) {}

absl::Status LiveStreams::Add(LiveStream* stream, grpc::CallbackServerContext* context) {
  if (find_caller_ == nullptr || context == nullptr) return AddAs({}, stream, context);
  ASSIGN_OR_RETURN(const auto caller, find_caller_(*context));
  RETURN_IF_ERROR(AddAs(caller, stream, context));
  // The second answer shows tokens that ended since the first; those that end from now on end the
  // stream.
  return find_caller_(*context).status();
}

absl::Status LiveStreams::AddAs(const storage::Caller& caller, LiveStream* stream,
                                grpc::CallbackServerContext* context) {
  MutexLock lock(&mutex_);
  if (stopped_) return ServerEnds();
  if (streams_.size() >= max_.total) return lookup::TooManyAtOnce(what_, max_);
  if (!caller.user.empty()) {
    const size_t has = std::count_if(streams_.begin(), streams_.end(), [&](const auto& each) {
      return each.second.caller.user == caller.user;
    });
    if (has >= max_.per_user) return lookup::TooManyOfUser(what_, caller.user, has, max_);
  }
  streams_[stream] = {context, caller};
  return absl::OkStatus();
}

void LiveStreams::EndTokens(const std::set<std::string>& tokens, const absl::Status& why) {
  MutexLock lock(&mutex_);
  for (const auto& [stream, call] : streams_) {
    if (call.context != nullptr && tokens.count(call.caller.token) > 0) EndNow(call.context, why);
  }
}

void LiveStreams::Remove(LiveStream* stream) {
  MutexLock lock(&mutex_);
  streams_.erase(stream);
  if (streams_.empty()) gone_.SignalAll();
}

size_t LiveStreams::size() const {
  MutexLock lock(&mutex_);
  return streams_.size();
}

void LiveStreams::WakeAll() {
  MutexLock lock(&mutex_);
  for (const auto& [stream, call] : streams_) stream->Wake();
}

void LiveStreams::CheckPaces(absl::Duration now) {
  MutexLock lock(&mutex_);
  for (auto& [stream, call] : streams_) {
    stream->CheckPace(now);
    if (call.caller.user.empty()) continue;
    if (!call.since.has_value()) call.since = now;
    if (now - *call.since > max_time_) EndNow(call.context, TookTooLong(what_, max_time_));
  }
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

void Pace::Write(size_t bytes, absl::Duration now) {
  const absl::Duration time = TimeOf(bytes);
  // In advance, because a message that takes longer than the timeout could never pass.
  const absl::Duration advance = std::max(absl::ZeroDuration(), time - timeout_);
  MutexLock lock(&mutex_);
  behind_ -= advance;
  writes_ = time - advance;
  since_ = now;
}

void Pace::Written(absl::Duration now) {
  MutexLock lock(&mutex_);
  End(writes_, now);
}

void Pace::Read(absl::Duration now) {
  MutexLock lock(&mutex_);
  since_ = now;
}

void Pace::HasRead(size_t bytes, absl::Duration now) {
  MutexLock lock(&mutex_);
  End(TimeOf(bytes), now);
}

void Pace::End(absl::Duration earned, absl::Duration now) {
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
                      " KiB a second, with at most ", absl::FormatDuration(timeout_), " of delay");
}

}  // namespace ablate::rpc
