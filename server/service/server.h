// The gRPC server: every public service on one socket, the workers' channel on another.
#ifndef ABLATE_SERVER_SERVICE_SERVER_H_
#define ABLATE_SERVER_SERVICE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/live_streams.h"
#include "server/schedule/scheduler_thread.h"
#include "storage/store.h"

namespace ablate::service {

struct ServerOptions {
  std::string client_address;  // "unix:PATH"
  std::string worker_address;  // "unix:PATH"
  std::string owner;           // name of the OS user, recorded with experiments
  rpc::MinPace pace{};         // of streams whose other end is slow
};

// Watchers are woken by Notify; nothing polls. Thread-safe.
class Server {
 public:
  // Listens on both addresses. `store` and `scheduler` must outlive it.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       storage::Store* store,
                                                       schedule::SchedulerThread* scheduler);
  // Ends calls in progress with UNAVAILABLE.
  virtual ~Server() = default;
  // Does that for clients and refuses new ones, while workers can still save and leave.
  virtual void StopClients() = 0;
  // A group of writes ended, and this is the newest change number: wakes watchers if it is a new
  // one, or if the disk is full now or no longer (storage::StoreOptions::on_commit).
  virtual void Notify(uint64_t change) = 0;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_SERVER_H_
