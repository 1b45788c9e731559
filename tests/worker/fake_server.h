// A server in the test's process: it applies events like the real one, and misbehaves on request.
#ifndef ABLATE_TESTS_WORKER_FAKE_SERVER_H_
#define ABLATE_TESTS_WORKER_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "base/mutex.h"

namespace grpc {
class Server;
}

namespace ablate::worker {

// Received messages, and how to respond. Guarded by the server's lock.
struct ServerState {
  // How to respond; a test sets these.
  uint32_t heartbeat_ms = 10;
  uint32_t grace_ms = 60'000;
  uint64_t credit_bytes = 1 << 20;
  bool hold_acks = false;
  std::map<std::string, std::string> blobs;  // by hash
  std::vector<int> write_errors;             // gRPC codes for the next WriteBlob calls
  std::vector<int> read_errors;              // likewise
  std::set<std::string> dropped;             // leases to answer with DROP

  // Received messages.
  std::vector<v1::Hello> hellos;
  std::vector<v1::Heartbeat> heartbeats;
  std::vector<v1::FromWorker> analyses;         // parts, results and failures
  std::vector<v1::Event> events;                // as applied: each number of a lease once
  std::map<std::string, uint64_t> applied;      // last number of a lease
  std::map<std::string, uint64_t> to_be_acked;  // while acks are held
  uint32_t repeated_events = 0;
  uint32_t gaps = 0;
  uint32_t reads = 0;
  bool attached = false;
};

// Serves one worker over gRPC. Thread-safe.
class FakeServer {
 public:
  explicit FakeServer(std::string socket);
  ~FakeServer();

  std::string address() const;
  void Start();
  // Ends every call; the state is kept.
  void Stop();

  void Change(const std::function<void(ServerState&)>& change);
  // Waits until `holds` returns true; a test failure on timeout. Returns a copy.
  ServerState WaitUntil(const std::function<bool(const ServerState&)>& holds);
  ServerState state();

  // Sends a message to the attached worker; waits until there is one.
  void Send(const v1::ToWorker& message);
  // Grants each run under a lease with the run's name.
  void Grant(const std::vector<v1::GrantedRun>& runs);
  void Cancel(const std::string& run);
  void Save(const std::string& run);
  void Drain();
  // Acknowledges everything held back, and from now on every event.
  void ReleaseAcks();
  void BreakStream();

 private:
  class Service;

  const std::string socket_;
  Mutex mutex_;
  CondVar changed_;
  ServerState state_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns the applied events of one run.
std::vector<v1::Event> EventsOf(const ServerState& state, const std::string& run);

// Returns true if an event of this kind of the run was applied.
bool Has(const ServerState& state, const std::string& run, v1::Event::KindCase kind);

// Returns values of one key of a run in order of arrival, as {step, value}.
std::vector<std::pair<uint32_t, double>> Series(const ServerState& state, const std::string& run,
                                                const std::string& key);

}  // namespace ablate::worker

#endif  // ABLATE_TESTS_WORKER_FAKE_SERVER_H_
