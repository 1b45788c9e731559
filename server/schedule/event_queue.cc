#include "server/schedule/event_queue.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::schedule {
namespace {

constexpr size_t kGroupEvents = 512;
constexpr uint64_t kGroupBytes = 8 << 20;
constexpr absl::Duration kMinBackOff = absl::Seconds(1);
constexpr absl::Duration kMaxBackOff = absl::Seconds(15);

}  // namespace

absl::Status EventQueue::Add(storage::LeaseEvent event, uint64_t bytes, const Limits& limits,
                             std::shared_ptr<storage::Blobs::Pin> pin) {
  const auto lease = bytes_.find(event.lease);
  const uint64_t held = lease == bytes_.end() ? 0 : lease->second;
  if (held > 0 && held + bytes > limits.lease_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("lease ", event.lease, " has ", held + bytes,
                                                     " unacknowledged bytes; expected at most ",
                                                     limits.lease_bytes));
  }
  if (all_bytes_ > 0 && all_bytes_ + bytes > limits.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the stream has ", all_bytes_ + bytes,
                                                     " unacknowledged bytes; expected at most ",
                                                     limits.bytes));
  }
  bytes_[event.lease] += bytes;
  all_bytes_ += bytes;
  waiting_.push_back({std::move(event), bytes, std::move(pin)});
  return absl::OkStatus();
}

SharedGroup EventQueue::Take(absl::Duration now) {
  if (with_store_ || (!again_.empty() && now < again_at_)) return nullptr;
  SharedGroup group;
  if (again_.empty()) {
    group = Collect(kGroupEvents, kGroupBytes);
  } else {
    group = std::move(again_.front());
    again_.pop_front();
  }
  with_store_ = group != nullptr;
  return group;
}

SharedGroup EventQueue::TakeAll() {
  auto all = std::make_shared<EventGroup>();
  SharedGroup rest =
      Collect(std::numeric_limits<size_t>::max(), std::numeric_limits<uint64_t>::max());
  if (rest != nullptr) again_.push_back(std::move(rest));
  for (const SharedGroup& part : std::exchange(again_, {})) {
    all->events.insert(all->events.end(), part->events.begin(), part->events.end());
    all->bytes.insert(all->bytes.end(), part->bytes.begin(), part->bytes.end());
    all->pins.insert(all->pins.end(), part->pins.begin(), part->pins.end());
  }
  return all->events.empty() ? nullptr : all;
}

void EventQueue::Applied(const EventGroup& group) {
  with_store_ = false;
  back_off_ = absl::ZeroDuration();
  for (size_t i = 0; i < group.events.size(); ++i) {
    const auto held = bytes_.find(group.events[i].lease);
    held->second -= group.bytes[i];
    all_bytes_ -= group.bytes[i];
    if (held->second == 0) bytes_.erase(held);
  }
}

void EventQueue::NoRoom(SharedGroup group, absl::Duration now) {
  with_store_ = false;
  again_.push_front(std::move(group));
  back_off_ = std::clamp(back_off_ * 2, kMinBackOff, kMaxBackOff);
  again_at_ = now + back_off_;
}

void EventQueue::Split(const std::vector<SharedGroup>& parts) {
  with_store_ = false;
  again_.insert(again_.begin(), parts.begin(), parts.end());
}

SharedGroup EventQueue::Collect(size_t max_events, uint64_t max_bytes) {
  if (waiting_.empty()) return nullptr;
  auto group = std::make_shared<EventGroup>();
  uint64_t bytes = 0;
  while (!waiting_.empty() && group->events.size() < max_events && bytes < max_bytes) {
    Waiting& next = waiting_.front();
    bytes += next.bytes;
    group->bytes.push_back(next.bytes);
    group->events.push_back(std::move(next.event));
    if (next.pin != nullptr) group->pins.push_back(std::move(next.pin));
    waiting_.pop_front();
  }
  return group;
}

}  // namespace ablate::schedule
