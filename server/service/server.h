// Runs the gRPC server: every public service on one socket, the workers' channel on another.
#ifndef ABLATE_SERVER_SERVICE_SERVER_H_
#define ABLATE_SERVER_SERVICE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "server/access/certificate_keeper.h"
#include "server/access/sharing.h"
#include "server/net/authentication_log.h"
#include "server/net/public_port.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/work_pool.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/metrics_port.h"
#include "server/service/services.h"
#include "storage/store.h"

namespace ablate::service {

struct ServerOptions {
  std::string client_address;  // "unix:PATH"
  std::string worker_address;  // "unix:PATH"
  std::string owner;    // name of the OS user; the caller of all calls through the client address
  rpc::MinPace pace{};  // least pace of streams
  // If it can be shared: adds an Admin service. Must outlive the server; null: not shared.
  access::Sharing* sharing = nullptr;
  // Public address HOST:PORT, with TLS and tokens only; empty: none.
  std::string public_address = {};
  // Program that answers a SQL statement if its argument is sql::kSqlChild.
  std::string sql_program = "/proc/self/exe";
  absl::Duration sql_processor_time = lookup::kMaxSqlProcessorTime;
  // Port of 127.0.0.1 for Prometheus (MetricsPort); 0: any free one, -1: none.
  int metrics_port = -1;
};

// The gRPC server. On its public address every call needs a token whose role the method's rule
// admits (rpc/authenticator.h); when a token ends, its open streams end. Notify wakes watchers, as
// does a check for stalls at most every second. Thread-safe.
class Server {
 public:
  // Listens on all addresses. `store` and `scheduler` must outlive it. FAILED_PRECONDITION for a
  // public address if sharing isn't initialised.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       storage::Store* store,
                                                       schedule::SchedulerThread* scheduler);
  // Ends calls in progress with UNAVAILABLE.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends clients' calls and refuses new ones, while workers can still save and leave.
  void StopClients();
  // Returns the port for Prometheus; 0 without one.
  int metrics_port() const { return metrics_port_ == nullptr ? 0 : metrics_port_->port(); }
  // Returns the port of the public address; 0 without one.
  int public_port() const { return public_port_ == nullptr ? 0 : public_port_->port(); }
  // Called after a group of writes with the newest change number: wakes watchers if the number is
  // new, or if the disk became full or stopped being so (storage::StoreOptions::on_commit).
  void Notify(uint64_t change);

 private:
  Server(const ServerOptions& options, storage::Store* store, schedule::SchedulerThread* scheduler);

  absl::Status ListenOnBoth(const ServerOptions& options);
  // Sets up per-user limits, the owner's included. Call it before listening.
  void KnowUsers();
  absl::Status ListenInPublic(const ServerOptions& options);
  // Starts to maintain the certificate, and makes the public port use new ones.
  void KeepCertificate();
  std::vector<std::unique_ptr<grpc::Service>> MakeClientServices();
  // Returns all streams that the public address serves.
  std::vector<rpc::LiveStreams*> StreamsWithTokens();
  // Ends the streams of these tokens.
  void EndTokens(const std::set<std::string>& tokens, const absl::Status& why);
  void EndExpiredTokens();
  // Starts to write the public port's refusals to the audit log, unless that is in progress.
  void WriteAuthenticationLog();
  // Has the certificate checked if that is due.
  void CheckCertificate();
  // Returns true if a stall began or ended since the last call.
  bool StallChanged();
  // Repeats while there is a pool: ends streams whose other end is too slow, and notifies watchers
  // of a stall that began or ended without a write to the database, such as a blob's.
  void CheckLater();

  // Destroyed in reverse: first the servers, so that no reactor is left, then what reactors use.
  const absl::Duration check_interval_;
  Backend backend_;
  WorkerBackend workers_;
  std::atomic<uint64_t> notified_ = 0;
  std::atomic<bool> stalled_ = false;
  // Tokens that expired up to this time have been handled, only by CheckLater once it has begun;
  // the epoch without a public address.
  absl::Time expired_until_;
  std::unique_ptr<MetricsPort> metrics_port_;                   // null unless it is asked for
  std::unique_ptr<net::AuthenticationLog> authentication_log_;  // null without a public address
  std::atomic<bool> writes_authentication_log_ = false;
  // The pool uses both, too; null without a public address.
  std::unique_ptr<net::PublicPort> public_port_;
  std::unique_ptr<access::CertificateKeeper> certificate_;
  rpc::WorkPool pool_;
  rpc::WorkPool worker_pool_;
  rpc::WorkPool comparing_;
  rpc::WorkPool submissions_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::vector<std::unique_ptr<grpc::Service>> public_services_;
  std::vector<std::unique_ptr<grpc::Service>> worker_services_;
  std::unique_ptr<analysis::AnalysisRunner> analyses_;
  std::unique_ptr<submit::AnalysisPlanner> planner_;
  std::unique_ptr<grpc::Server> public_server_;
  std::unique_ptr<grpc::Server> client_server_;
  std::unique_ptr<grpc::Server> worker_server_;
  // Brings an older store's fields up to date, once; uses the store alone.
  std::jthread describing_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_SERVER_H_
