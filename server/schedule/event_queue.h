// Events of one session between their arrival and the commit.
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
  std::vector<uint64_t> bytes;                             // one an event
  std::vector<std::shared_ptr<storage::Blobs::Pin>> pins;  // of the blobs that the events name
};
using SharedGroup = std::shared_ptr<const EventGroup>;

// Buffers events and hands them out in groups, one at a time: while the store commits one, the next
// collects. A group that found no room is handed out again, before anything later.
class EventQueue {
 public:
  // What may be here; one event alone always may.
  struct Limits {
    uint64_t lease_bytes = 0;
    uint64_t bytes = 0;  // of all leases, for their names are the worker's word
  };
  // RESOURCE_EXHAUSTED if there then were more.
  absl::Status Add(storage::LeaseEvent event, uint64_t bytes, const Limits& limits,
                   std::shared_ptr<storage::Blobs::Pin> pin);
  // Null while a group is with the store, before the time for another try, or if there is nothing.
  SharedGroup Take(absl::Duration now);
  // All that is not with the store, whatever the time: the stream has ended.
  SharedGroup TakeAll();
  // The store's answer to the group taken last.
  void Applied(const EventGroup& group);
  void NoRoom(SharedGroup group, absl::Duration now);
  // One event of the group can't be stored: its parts are handed out next, one after another.
  void Split(const std::vector<SharedGroup>& parts);

 private:
  struct Waiting {
    storage::LeaseEvent event;
    uint64_t bytes = 0;
    std::shared_ptr<storage::Blobs::Pin> pin;
  };

  SharedGroup Collect(size_t max_events, uint64_t max_bytes);

  std::deque<Waiting> waiting_;
  std::map<std::string, uint64_t> bytes_;  // of each lease, here or with the store
  uint64_t all_bytes_ = 0;
  std::deque<SharedGroup> again_;
  absl::Duration again_at_;
  absl::Duration back_off_;
  bool with_store_ = false;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_EVENT_QUEUE_H_
