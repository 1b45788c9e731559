// The worker's side of the lease protocol: which leases it holds, what it sent, what was
// acknowledged. No threads, no transport, no tensors, so that the simulation can drive it.
#ifndef ABLATE_SERVER_WORKER_LEASE_BOOK_H_
#define ABLATE_SERVER_WORKER_LEASE_BOOK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::worker {

// What the worker has to do after a message from the server.
struct Instructions {
  struct LeasedRun {
    std::string lease;
    v1::GrantedRun run;
  };
  struct RunKey {
    std::string lease;
    std::string run;
  };
  std::vector<LeasedRun> start;
  std::vector<RunKey> stop;  // within one step; nothing more is reported about them
  bool drain = false;
  std::vector<v1::FromWorker> send;  // in this order
};

// Not thread-safe. A run's events are numbered within its lease; what is not acknowledged is kept
// and sent again after a reconnect. A lease is forgotten when every run of it has ended and
// everything was acknowledged.
class LeaseBook {
 public:
  // What Hello says about held leases. Until their verdicts have come, nothing is sent for them.
  std::vector<v1::HeldLease> Held() const;
  // The stream is gone: what was sent may not have arrived.
  void Disconnected();

  Instructions Receive(const v1::ToWorker& message);

  // Appends an event of a run (lease, run and kind set; the number is given here) and returns what
  // may be sent now within the credit. Ignored if the run has left the lease.
  std::vector<v1::FromWorker> Report(v1::Event event);

  // Whether the lease's unacknowledged bytes are below its credit; otherwise its runs pause.
  bool HasCredit(absl::string_view lease) const;
  // Whether the run is still ours to train and report on.
  bool Holds(absl::string_view lease, absl::string_view run) const;
  bool empty() const;
  // The worker was without a stream longer than the grace: every lease is dropped; the runs to
  // stop.
  std::vector<Instructions::RunKey> DropAll();
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LEASE_BOOK_H_
