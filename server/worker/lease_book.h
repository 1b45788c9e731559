// The worker's side of the lease protocol: which leases it holds, what it sent, what was
// acknowledged. No threads, no transport, no tensors, so that the simulation can drive it.
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

// What the worker has to do after a message from the server.
struct Instructions {
  std::optional<v1::Grant> start;
  std::string stop;  // lease whose run is to end within one step, unreported; empty: none
  std::string save;  // lease whose run is to save its state soon; empty: none
  bool drain = false;
  std::vector<v1::FromWorker> send;  // in this order
};

// Not thread-safe. Events are numbered within their lease; what is not acknowledged is kept and
// sent again after a reconnect. A lease is forgotten when its run has ended and everything was
// acknowledged.
class LeaseBook {
 public:
  // What Hello says about held leases. Until their verdicts have come, nothing is sent for them.
  std::vector<v1::HeldLease> Held() const;
  // The stream is gone: what was sent may not have arrived.
  void Disconnected();

  Instructions Receive(const v1::ToWorker& message);

  // Appends an event (lease and kind set; the number is given here) and returns what may be sent
  // now within the credit. Ignored if the lease is not held or its run has ended.
  std::vector<v1::FromWorker> Report(v1::Event event);

  // Whether the lease's unacknowledged bytes are below its credit; otherwise its run pauses.
  bool HasCredit(absl::string_view lease) const;
  bool empty() const;
  // The worker was without a stream longer than the grace: every lease is dropped. Those whose runs
  // are to stop.
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
    uint64_t in_flight_bytes = 0;  // of those, sent on this stream
    uint64_t credit_bytes = 0;
    bool awaits_verdict = false;
  };
  using Leases = std::map<std::string, Lease, std::less<>>;

  void Apply(const v1::Verdict& verdict, Instructions* instructions);
  void Apply(const v1::Grant& grant, Instructions* instructions);
  void Apply(const v1::Ack& ack, Instructions* instructions);
  void Apply(const v1::Cancel& cancel, Instructions* instructions);
  void Apply(const v1::Save& save, Instructions* instructions);
  // Forgets the lease; its run is to be stopped unless it has ended.
  void Drop(Leases::iterator lease, Instructions* instructions);
  void ForgetIfSettled(Leases::iterator lease);

  static uint64_t FirstUnacked(const Lease& lease);
  static void TrimThrough(Lease* lease, uint64_t seq);
  static void TakeSendable(Lease* lease, std::vector<v1::FromWorker>* send);

  Leases leases_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LEASE_BOOK_H_
