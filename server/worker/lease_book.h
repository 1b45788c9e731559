// Implements the worker's side of the lease protocol: held leases, sent and acknowledged events.
// Has no threads, transport or tensors, so that the simulation can drive it.
#ifndef ABLATE_SERVER_WORKER_LEASE_BOOK_H_
#define ABLATE_SERVER_WORKER_LEASE_BOOK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::worker {

// The worker's actions after a message from the server.
struct Instructions {
  std::optional<v1::Grant> start;
  std::string stop;  // lease whose run must end within one step, without a report; empty: none
  std::string save;  // lease whose run must save its state soon; empty: none
  bool drain = false;
  std::vector<v1::FromWorker> send;  // in this order
};

// Tracks leases. Not thread-safe. Events are numbered within their lease; unacknowledged events are
// kept and resent after a reconnect. A lease is removed once its run has ended and everything is
// acknowledged.
class LeaseBook {
 public:
  // Returns the held leases for Hello. Nothing is sent for them until their verdicts have arrived.
  std::vector<v1::HeldLease> Held() const;
  // The stream is gone; sent messages may not have arrived.
  void Disconnected();

  Instructions Receive(const v1::ToWorker& message);

  // Appends an event (lease and kind must be set; the number is assigned here). Returns the
  // messages that may be sent now within the credit. Ignores the event if the lease isn't held or
  // its run has ended.
  std::vector<v1::FromWorker> Report(v1::Event event);

  // Returns true if the lease's unacknowledged bytes are below its credit. If not, its run pauses.
  bool HasCredit(absl::string_view lease) const;
  bool empty() const;
  // Drops every lease, after longer than the grace without a stream. Returns the leases whose runs
  // must stop.
  std::vector<std::string> DropAll();

 private:
  struct Unacked {
    v1::FromWorker message;
    uint64_t bytes = 0;
  };
  struct Lease {
    bool ended = false;  // the run has reported its end
    // Ascending sequence numbers without gaps, ending at next_seq - 1.
    std::deque<Unacked> unacked;
    uint64_t next_seq = 1;
    uint64_t next_to_send = 1;  // on this stream
    uint64_t unacked_bytes = 0;
    uint64_t in_flight_bytes = 0;  // part of unacked_bytes, sent on this stream
    uint64_t credit_bytes = 0;
    bool awaits_verdict = false;
  };
  using Leases = std::map<std::string, Lease, std::less<>>;

  void Apply(const v1::Verdict& verdict, Instructions* instructions);
  void Apply(const v1::Grant& grant, Instructions* instructions);
  void Apply(const v1::Ack& ack, Instructions* instructions);
  void Apply(const v1::Cancel& cancel, Instructions* instructions);
  void Apply(const v1::Save& save, Instructions* instructions);
  // Removes the lease. Its run must be stopped unless it has ended.
  void Drop(Leases::iterator lease, Instructions* instructions);
  void ForgetIfSettled(Leases::iterator lease);

  static uint64_t FirstUnacked(const Lease& lease);
  static void TrimThrough(Lease* lease, uint64_t seq);
  static void TakeSendable(Lease* lease, std::vector<v1::FromWorker>* send);

  Leases leases_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LEASE_BOOK_H_
