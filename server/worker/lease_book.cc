// Keeps unacknowledged events and decides what may be sent again.
#include "server/worker/lease_book.h"

#include <algorithm>
#include <utility>

namespace ablate::worker {
namespace {

bool EndsRun(const v1::Event& event) {
  return event.has_finished() || event.has_failed() || event.has_released();
}

}  // namespace

std::vector<v1::HeldLease> LeaseBook::Held() const {
  std::vector<v1::HeldLease> held;
  held.reserve(leases_.size());
  for (const auto& [id, lease] : leases_) {
    v1::HeldLease& entry = held.emplace_back();
    entry.set_lease(id);
    entry.set_first_unacked(FirstUnacked(lease));
  }
  return held;
}

void LeaseBook::Disconnected() {
  for (auto& [id, lease] : leases_) {
    lease.awaits_verdict = true;
    lease.next_to_send = FirstUnacked(lease);
    lease.in_flight_bytes = 0;
  }
}

Instructions LeaseBook::Receive(const v1::ToWorker& message) {
  Instructions instructions;
  switch (message.message_case()) {
    case v1::ToWorker::kVerdict:
      Apply(message.verdict(), &instructions);
      break;
    case v1::ToWorker::kGrant:
      Apply(message.grant(), &instructions);
      break;
    case v1::ToWorker::kAck:
      Apply(message.ack(), &instructions);
      break;
    case v1::ToWorker::kCancel:
      Apply(message.cancel(), &instructions);
      break;
    case v1::ToWorker::kSave:
      Apply(message.save(), &instructions);
      break;
    case v1::ToWorker::kDrain:
      instructions.drain = true;
      break;
    case v1::ToWorker::kWelcome:  // the attach loop handles its times
    case v1::ToWorker::kAnalyze:  // not part of a lease
    case v1::ToWorker::kCancelAnalysis:
    case v1::ToWorker::kYieldAnalysis:
    case v1::ToWorker::MESSAGE_NOT_SET:
      break;
  }
  return instructions;
}

std::vector<v1::FromWorker> LeaseBook::Report(v1::Event event) {
  std::vector<v1::FromWorker> send;
  const auto found = leases_.find(event.lease());
  if (found == leases_.end()) return send;
  Lease& lease = found->second;
  if (lease.ended) return send;
  lease.ended = EndsRun(event);
  event.set_seq(lease.next_seq++);
  Unacked entry;
  *entry.message.mutable_event() = std::move(event);
  entry.bytes = entry.message.ByteSizeLong();
  lease.unacked_bytes += entry.bytes;
  lease.unacked.push_back(std::move(entry));
  TakeSendable(&lease, &send);
  return send;
}

bool LeaseBook::HasCredit(absl::string_view lease) const {
  const auto found = leases_.find(lease);
  return found != leases_.end() && found->second.unacked_bytes < found->second.credit_bytes;
}

bool LeaseBook::empty() const { return leases_.empty(); }

std::vector<std::string> LeaseBook::DropAll() {
  std::vector<std::string> stop;
  for (const auto& [id, lease] : leases_) {
    if (!lease.ended) stop.push_back(id);
  }
  leases_.clear();
  return stop;
}

void LeaseBook::Apply(const v1::Verdict& verdict, Instructions* instructions) {
  const auto found = leases_.find(verdict.lease());
  if (found == leases_.end()) return;
  Lease& lease = found->second;
  // If the server lacks events that are gone here, or has events that were never made, it has
  // another history for this lease, which can't be continued.
  const bool continuable =
      verdict.acked() + 1 >= FirstUnacked(lease) && verdict.acked() < lease.next_seq;
  if (verdict.drop() || !continuable) {
    Drop(found, instructions);
    return;
  }
  lease.awaits_verdict = false;
  lease.credit_bytes = verdict.credit_bytes();
  TrimThrough(&lease, verdict.acked());
  lease.next_to_send = FirstUnacked(lease);
  lease.in_flight_bytes = 0;
  TakeSendable(&lease, &instructions->send);
  ForgetIfSettled(found);
}

void LeaseBook::Apply(const v1::Grant& grant, Instructions* instructions) {
  const auto [entry, is_new] = leases_.try_emplace(grant.lease());
  if (!is_new) return;
  entry->second.credit_bytes = grant.credit_bytes();
  instructions->start = grant;
}

void LeaseBook::Apply(const v1::Ack& ack, Instructions* instructions) {
  const auto found = leases_.find(ack.lease());
  if (found == leases_.end()) return;
  TrimThrough(&found->second, ack.seq());
  TakeSendable(&found->second, &instructions->send);
  ForgetIfSettled(found);
}

void LeaseBook::Apply(const v1::Cancel& cancel, Instructions* instructions) {
  const auto found = leases_.find(cancel.lease());
  if (found != leases_.end()) Drop(found, instructions);
}

void LeaseBook::Apply(const v1::Save& save, Instructions* instructions) {
  const auto found = leases_.find(save.lease());
  if (found != leases_.end() && !found->second.ended) instructions->save = save.lease();
}

void LeaseBook::Drop(Leases::iterator lease, Instructions* instructions) {
  if (!lease->second.ended) instructions->stop = lease->first;
  leases_.erase(lease);
}

void LeaseBook::ForgetIfSettled(Leases::iterator lease) {
  if (lease->second.ended && lease->second.unacked.empty()) leases_.erase(lease);
}

uint64_t LeaseBook::FirstUnacked(const Lease& lease) {
  return lease.next_seq - lease.unacked.size();
}

void LeaseBook::TrimThrough(Lease* lease, uint64_t seq) {
  while (!lease->unacked.empty() && FirstUnacked(*lease) <= seq) {
    const uint64_t bytes = lease->unacked.front().bytes;
    lease->unacked_bytes -= bytes;
    if (FirstUnacked(*lease) < lease->next_to_send) lease->in_flight_bytes -= bytes;
    lease->unacked.pop_front();
  }
  lease->next_to_send = std::max(lease->next_to_send, FirstUnacked(*lease));
}

// Takes the events that may be sent. An event larger than the whole credit is sent if nothing else
// is in flight.
void LeaseBook::TakeSendable(Lease* lease, std::vector<v1::FromWorker>* send) {
  if (lease->awaits_verdict) return;
  while (lease->next_to_send < lease->next_seq) {
    const Unacked& next = lease->unacked[lease->next_to_send - FirstUnacked(*lease)];
    const bool fits = lease->in_flight_bytes + next.bytes <= lease->credit_bytes;
    if (!fits && lease->in_flight_bytes > 0) return;
    send->push_back(next.message);
    lease->in_flight_bytes += next.bytes;
    ++lease->next_to_send;
  }
}

}  // namespace ablate::worker
