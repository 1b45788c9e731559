// The gRPC server: every public service on one socket, the workers' channel on another.
#ifndef ABLATE_SERVER_SERVICE_SERVER_H_
#define ABLATE_SERVER_SERVICE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "server/access/certificate_keeper.h"
#include "server/access/sharing.h"
#include "server/rpc/door_log.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/public_port.h"
#include "server/rpc/work_pool.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/services.h"
#include "storage/store.h"

namespace ablate::service {

struct ServerOptions {
  std::string client_address;  // "unix:PATH"
  std::string worker_address;  // "unix:PATH"
  std::string owner;           // name of the OS user, who calls through the client address
  rpc::MinPace pace{};         // of streams whose other end is slow
  // With whom it may be shared: then there is an Admin service. Outlives the server; null: nobody.
  access::Sharing* sharing = nullptr;
  // Where it is shared, HOST:PORT, by TLS and tokens alone; empty: nowhere.
  std::string public_address = {};
};

// On its public address everybody needs a token, whose role each method's rule must let in
// (rpc/authenticator.h); a token that ends takes its open streams with it.
// Watchers are woken by Notify, and by a look for stalls at most every second. Thread-safe.
class Server {
 public:
  // Listens on all addresses. `store` and `scheduler` must outlive it. FAILED_PRECONDITION, for a
  // public address, if nobody has made what sharing takes.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       storage::Store* store,
                                                       schedule::SchedulerThread* scheduler);
  // Ends calls in progress with UNAVAILABLE.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Does that for clients and refuses new ones, while workers can still save and leave.
  void StopClients();
  // Of the public address; 0 without one.
  int public_port() const { return public_port_ == nullptr ? 0 : public_port_->port(); }
  // A group of writes ended, and this is the newest change number: wakes watchers if it is a new
  // one, or if the disk is full now or no longer (storage::StoreOptions::on_commit).
  void Notify(uint64_t change);

 private:
  Server(const ServerOptions& options, storage::Store* store, schedule::SchedulerThread* scheduler);

  absl::Status ListenOnBoth(const ServerOptions& options);
  // Has what each user may have of the server counted, the owner's too. Before it listens.
  void KnowUsers();
  absl::Status ListenInPublic(const ServerOptions& options);
  // Has the certificate looked after, and the public port use what becomes of it.
  void KeepCertificate();
  std::vector<std::unique_ptr<grpc::Service>> MakeClientServices();
  // All that the public address serves.
  std::vector<rpc::LiveStreams*> StreamsWithTokens();
  // Ends the streams of these tokens.
  void EndTokens(const std::set<std::string>& tokens, const absl::Status& why);
  void EndExpiredTokens();
  // Has what the public port refused go to the audit log, unless that is being done still.
  void WriteDoorLog();
  // Has the certificate looked at if that is due.
  void CheckCertificate();
  // Whether a stall came or went since this was last asked.
  bool StallChanged();
  // Ends streams whose other end is too slow, and tells watchers of a stall that came or went
  // without a write to the database, as a blob's does; for as long as there is a pool.
  void CheckLater();

  // Destroyed in reverse: first the servers, so that no reactor is left, then what reactors use.
  const absl::Duration check_interval_;
  Backend backend_;
  WorkerBackend workers_;
  std::atomic<uint64_t> notified_ = 0;
  std::atomic<bool> stalled_ = false;
  // Tokens that expired up to then have been looked at, by CheckLater alone once it has begun; the
  // epoch without a public address.
  absl::Time expired_until_;
  std::unique_ptr<rpc::DoorLog> door_log_;  // null without a public address
  std::atomic<bool> writes_door_log_ = false;
  // Both are used by the pool, too, and null without a public address.
  std::unique_ptr<rpc::PublicPort> public_port_;
  std::unique_ptr<access::CertificateKeeper> certificate_;
  rpc::WorkPool pool_;
  rpc::WorkPool worker_pool_;
  rpc::WorkPool comparing_;
  rpc::WorkPool submissions_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::vector<std::unique_ptr<grpc::Service>> public_services_;
  std::vector<std::unique_ptr<grpc::Service>> worker_services_;
  std::unique_ptr<AnalysisRunner> analyses_;
  std::unique_ptr<AnalysisPlanner> planner_;
  std::unique_ptr<grpc::Server> public_server_;
  std::unique_ptr<grpc::Server> client_server_;
  std::unique_ptr<grpc::Server> worker_server_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_SERVER_H_
