// Moves events from the stream to the store, and handles the store's answers.
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/schedule/messages.h"
#include "server/schedule/scheduler.h"

namespace ablate::schedule {

namespace v1 = worker::v1;
using storage::Applied;

namespace {

// Number of ended leases whose workers may still have events to send.
constexpr size_t kForgottenLeases = 16;

std::vector<SharedGroup> ByLease(const EventGroup& group) {
  std::map<std::string, std::shared_ptr<EventGroup>> parts;
  for (size_t i = 0; i < group.events.size(); ++i) {
    std::shared_ptr<EventGroup>& part = parts[group.events[i].lease];
    if (part == nullptr) part = std::make_shared<EventGroup>();
    part->events.push_back(group.events[i]);
    part->bytes.push_back(group.bytes[i]);
    part->pins = group.pins;
  }
  std::vector<SharedGroup> groups;
  for (auto& [lease, part] : parts) groups.push_back(std::move(part));
  return groups;
}

// Returns the end for an event that our workers never send. It counts as a failure, because any
// worker of the run would send it again.
storage::LeaseEnding Wrong(absl::string_view why) {
  return {storage::LeaseEnd::kDied, absl::StrCat("its worker sent a wrong event: ", why)};
}

storage::LeaseEnding Lost(absl::string_view why) {
  return {storage::LeaseEnd::kLost, std::string(why)};
}

}  // namespace

void Scheduler::OnEvent(Session id, const v1::FromWorker& message) {
  const std::string& lease = message.event().lease();
  absl::StatusOr<storage::LeaseEvent> event = ToLeaseEvent(message.event());
  if (!event.ok()) {
    Reject(id, lease, Wrong(event.status().message()));
    Close(id, event.status());
    return;
  }
  std::shared_ptr<storage::Blobs::Pin> pin;
  const absl::string_view blob = NamedBlob(*event);
  if (!blob.empty() && store_->blobs() != nullptr) {
    absl::StatusOr<std::shared_ptr<storage::Blobs::Pin>> found = store_->blobs()->Find(blob);
    if (absl::IsNotFound(found.status())) {
      // Published before a restart of the server, and swept since; the worker can't know.
      Reject(id, lease, Lost(absl::StrCat("its blob ", blob, " is gone")));
      return;
    }
    if (!found.ok()) {
      Close(id, absl::UnavailableError(found.status().message()));
      return;
    }
    pin = *std::move(found);
  }
  Attachment& attachment = sessions_[id];
  NoteProgress(attachment.worker, *event);
  const size_t leases = workers_[attachment.worker].leases.size() + kForgottenLeases;
  const absl::Status status = attachment.events.Add(
      *std::move(event), message.ByteSizeLong(),  // as the worker counts it
      {options_.credit_bytes, options_.credit_bytes * leases}, std::move(pin));
  if (!status.ok()) {
    Reject(id, lease, Lost(status.message()));
    Close(id, status);
    return;
  }
  Pump(id);
}

void Scheduler::NoteProgress(const std::string& name, const storage::LeaseEvent& event) {
  WorkerState& worker = workers_[name];
  worker.progress_at = clock_->Now();
  HeldLease* const lease = worker.Find(event.lease);
  if (lease == nullptr) return;
  lease->started = true;
  lease->ended = lease->ended || EndsRun(event);
  if (const auto* points = std::get_if<storage::PointsEvent>(&event.event)) {
    lease->meter.Add(clock_->Now(), *points);
  }
}

void Scheduler::Reject(Session id, const std::string& lease, storage::LeaseEnding ending) {
  End(sessions_[id].worker, lease, std::move(ending));
  // Also for a lease without a run: without an answer the worker would send the next event, again
  // on each new stream.
  SendCancel(id, lease);
}

void Scheduler::Pump(Session id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  SharedGroup group = found->second.events.Take(clock_->Now());
  if (group == nullptr) return;
  Submit({id, found->second.worker, found->second.incarnation, std::move(group)});
}

void Scheduler::Submit(Batch batch) {
  std::string incarnation = batch.incarnation;
  std::vector<storage::LeaseEvent> events = batch.group->events;
  auto done = OnThread<Results>(
      [this, batch = std::move(batch)](const Results& results) { OnApplied(batch, results); });
  store_->ApplyAsync(std::move(incarnation), std::move(events), std::move(done));
}

void Scheduler::OnApplied(const Batch& batch, const Results& results) {
  if (!results.ok()) {
    OnRefused(batch, results.status());
    return;
  }
  bool left = false, gave_back = false;
  for (size_t i = 0; i < results->size(); ++i) {
    const storage::LeaseEvent& event = batch.group->events[i];
    const bool gone = (*results)[i] == Applied::kNoLease;
    const bool durable = (*results)[i] == Applied::kApplied || (*results)[i] == Applied::kRepeated;
    const bool saves = std::holds_alternative<storage::ResumeStateEvent>(event.event);
    if (gone || (durable && (saves || EndsRun(event)))) NoteSaved(event);
    if (!gone && (!EndsRun(event) || (*results)[i] == Applied::kGap)) continue;
    LeaseLeft(batch, event);
    left = true;
    gave_back = gave_back || gone || !std::holds_alternative<storage::FinishedEvent>(event.event);
  }
  const auto session = sessions_.find(batch.session);
  if (session != sessions_.end()) {
    session->second.events.Applied(*batch.group);
    Answer(batch.session, *batch.group, *results);
    Pump(batch.session);
  }
  const auto worker = workers_.find(batch.worker);
  const bool waits = !gave_back && worker != workers_.end() && HasWork(worker->second);
  if (left && !waits) Dispatch();
}

// Without room nothing is acknowledged, so that the worker pauses when its credit is used up. The
// worker, if it still exists, resends the events of a closed session.
void Scheduler::OnRefused(const Batch& batch, const absl::Status& why) {
  if (absl::IsResourceExhausted(why) || absl::IsUnavailable(why)) {
    no_room_at_ = clock_->Now();
    const auto session = sessions_.find(batch.session);
    if (session != sessions_.end()) session->second.events.NoRoom(batch.group, no_room_at_);
    return;
  }
  const std::vector<SharedGroup> parts = ByLease(*batch.group);
  if (parts.size() > 1) {
    Resubmit(batch, parts);
    return;
  }
  const bool wrong = absl::IsInvalidArgument(why) || absl::IsFailedPrecondition(why);
  End(batch.worker, batch.group->events.front().lease,
      wrong ? Wrong(why.message()) : Lost(why.message()));
  Close(batch.session, why);
}

// One event was refused; the other leases must not be affected.
void Scheduler::Resubmit(const Batch& batch, const std::vector<SharedGroup>& parts) {
  const auto session = sessions_.find(batch.session);
  if (session != sessions_.end()) {
    session->second.events.Split(parts);
    Pump(batch.session);
    return;
  }
  for (const SharedGroup& part : parts) {
    Submit({batch.session, batch.worker, batch.incarnation, part});
  }
}

void Scheduler::Answer(Session id, const EventGroup& group, const std::vector<Applied>& results) {
  std::map<std::string, uint64_t> acked;
  std::set<std::string> gone;
  bool gap = false;
  for (size_t i = 0; i < group.events.size(); ++i) {
    const storage::LeaseEvent& event = group.events[i];
    if (results[i] == Applied::kGap) gap = true;
    if (results[i] == Applied::kNoLease) gone.insert(event.lease);
    if (results[i] == Applied::kApplied || results[i] == Applied::kRepeated) {
      acked[event.lease] = event.seq;
    }
  }
  for (const auto& [lease, seq] : acked) {
    v1::ToWorker message;
    message.mutable_ack()->set_lease(lease);
    message.mutable_ack()->set_seq(seq);
    SendTo(id, message);
  }
  for (const std::string& lease : gone) SendCancel(id, lease);
  if (gap) Close(id, absl::AbortedError("an earlier event is missing. Attach again and resend it"));
}

void Scheduler::LeaseLeft(const Batch& batch, const storage::LeaseEvent& event) {
  const auto worker = workers_.find(batch.worker);
  if (worker == workers_.end()) return;
  // A worker releases runs because it leaves, except for a state that it can't continue.
  const auto* released = std::get_if<storage::ReleasedEvent>(&event.event);
  if (released != nullptr && released->state_refused.empty() &&
      worker->second.incarnation == batch.incarnation) {
    worker->second.leaving = true;
  }
  worker->second.leases.erase(event.lease);
}

}  // namespace ablate::schedule
