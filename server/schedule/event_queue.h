// Buffers the events of one session between arrival and commit.
#ifndef ABLATE_SERVER_SCHEDULE_EVENT_QUEUE_H_
#define ABLATE_SERVER_SCHEDULE_EVENT_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/blobs.h"
#include "storage/lease_store.h"

namespace ablate::schedule {

struct EventGroup {
  std::vector<storage::LeaseEvent> events;
  std::vector<uint64_t> bytes;                             // one per event
  std::vector<std::shared_ptr<storage::Blobs::Pin>> pins;  // of the blobs that the events name
};
using SharedGroup = std::shared_ptr<const EventGroup>;

// Buffers events and returns them in groups: while the store commits one group, the next collects.
// A group for which there was no disk room is returned again, before anything later.
class EventQueue {
 public:
  // Limits of the buffer; a single event is always accepted.
  struct Limits {
    uint64_t lease_bytes = 0;
    uint64_t bytes = 0;  // over all leases, because the worker chooses their names
  };
  // Adds an event; RESOURCE_EXHAUSTED if that exceeds the limits.
  absl::Status Add(storage::LeaseEvent event, uint64_t bytes, const Limits& limits,
                   std::shared_ptr<storage::Blobs::Pin> pin);
  // Returns the next group; null while a group is with the store, before the time of the next
  // attempt, or if there is nothing.
  SharedGroup Take(absl::Duration now);
  // Returns everything that isn't with the store, at any time; for a stream that has ended.
  SharedGroup TakeAll();
  // Records the store's answer to the last group.
  void Applied(const EventGroup& group);
  void NoRoom(SharedGroup group, absl::Duration now);
  // Splits a group of which one event can't be stored: its parts are returned next, one after
  // another.
  void Split(const std::vector<SharedGroup>& parts);

 private:
  struct Waiting {
    storage::LeaseEvent event;
    uint64_t bytes = 0;
    std::shared_ptr<storage::Blobs::Pin> pin;
  };

  SharedGroup Collect(size_t max_events, uint64_t max_bytes);

  std::deque<Waiting> waiting_;
  std::map<std::string, uint64_t> bytes_;  // per lease, here or with the store
  uint64_t all_bytes_ = 0;
  std::deque<SharedGroup> again_;
  absl::Duration again_at_;
  absl::Duration back_off_;
  bool with_store_ = false;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_EVENT_QUEUE_H_
