#include "server/service/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "server/rpc/listen.h"
#include "server/schedule/clock.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

// They mostly wait for commits.
constexpr int kThreads = 8;
// That expand experiments, each up to 100,000 cells: what they hold is bounded by their number.
constexpr int kPlanners = 4;
// For the blobs of workers, so that no client's calls can hold them up.
constexpr int kWorkerThreads = 4;
// For calls in progress to end by themselves. Behind it come cancellations, also for watchers that
// a busy machine has not let come back yet.
constexpr std::chrono::seconds kShutdownTimeout{3};

void ShutDown(grpc::Server* server, std::chrono::seconds timeout) {
  server->GetHealthCheckService()->Shutdown();
  server->Shutdown(std::chrono::system_clock::now() + timeout);
}

class GrpcServer final : public Server {
 public:
  GrpcServer(const ServerOptions& options, storage::Store* store,
             schedule::SchedulerThread* scheduler)
      : check_interval_(
            std::clamp(options.pace.timeout / 60, absl::Milliseconds(1), absl::Seconds(1))),
        pool_(kThreads, rpc::kMaxWaitingCalls),
        worker_pool_(kWorkerThreads, rpc::kMaxWaitingCalls),
        planners_(kPlanners, rpc::kMaxWaitingCalls) {
    backend_.store = workers_.store = store;
    backend_.scheduler = workers_.scheduler = scheduler;
    backend_.pool = &pool_;
    workers_.pool = &worker_pool_;
    backend_.planners = &planners_;
    backend_.owner = options.owner;
    backend_.pace = workers_.pace = options.pace;
  }

  ~GrpcServer() override {
    StopClients();
    if (worker_server_ == nullptr) return;
    workers_.streams.StopAll();
    workers_.transfers.StopAll();
    ShutDown(worker_server_.get(), kShutdownTimeout);
  }

  absl::Status Start(const ServerOptions& options) {
    services_.push_back(MakeExperimentsService(&backend_));
    services_.push_back(MakeRunsService(&backend_));
    services_.push_back(MakeMetricsService(&backend_));
    services_.push_back(MakeDatasetsService(&backend_));
    services_.push_back(MakeArtifactsService(&backend_));
    services_.push_back(MakeReportsService(&backend_));
    services_.push_back(MakeModelsService(&backend_));
    services_.push_back(MakeWorkersService(&backend_));
    worker_services_.push_back(MakeWorkerChannelService(&workers_));
    auto clients = rpc::Listen(options.client_address, rpc::kMaxRequestBytes, services_);
    if (!clients.ok()) return clients.status();
    client_server_ = *std::move(clients);
    auto workers =
        rpc::Listen(options.worker_address, rpc::kMaxWorkerMessageBytes, worker_services_);
    if (!workers.ok()) return workers.status();
    worker_server_ = *std::move(workers);
    CheckLater();
    return absl::OkStatus();
  }

  void StopClients() override {
    if (client_server_ == nullptr) return;
    const auto streams = backend_.AllStreams();
    for (rpc::LiveStreams* each : streams) each->StopAll();
    backend_.scheduler->analyses().Stop();
    // While gRPC waits for calls it cancels new ones, of watchers that come back at once too. Here
    // those are told that the server ends, so gRPC gets nothing to wait for: it hangs up.
    const auto deadline = std::chrono::steady_clock::now() + kShutdownTimeout;
    for (rpc::LiveStreams* each : streams) each->WaitUntilGone(deadline);
    pool_.WaitUntilIdle(deadline);
    planners_.WaitUntilIdle(deadline);
    ShutDown(client_server_.get(), std::chrono::seconds(0));
  }

  // A group of writes that changed no run takes no new number, nor does one that found no room.
  void Notify(uint64_t change) override {
    const bool stall_changed = StallChanged();
    if (notified_.exchange(change) != change || stall_changed) backend_.watches.WakeAll();
  }

 private:
  // Since it was last asked.
  bool StallChanged() {
    const bool stalled = !backend_.store->stalled().empty();
    return stalled_.exchange(stalled) != stalled;
  }

  // Ends streams whose other end is too slow, and tells watchers of a stall that came or went
  // without a write to the database, as a blob's does; for as long as there is a pool.
  void CheckLater() {
    worker_pool_.PostAfter(check_interval_, [this] {
      const absl::Duration now = schedule::SteadyClock().Now();
      for (rpc::LiveStreams* streams : backend_.AllStreams()) streams->CheckPaces(now);
      workers_.streams.CheckPaces(now);
      workers_.transfers.CheckPaces(now);
      if (StallChanged()) backend_.watches.WakeAll();
      CheckLater();
    });
  }

  // Destroyed in reverse: first the servers, so that no reactor is left, then what reactors use.
  const absl::Duration check_interval_;
  Backend backend_;
  WorkerBackend workers_;
  rpc::WorkPool pool_;
  rpc::WorkPool worker_pool_;
  rpc::WorkPool planners_;
  std::atomic<uint64_t> notified_ = 0;
  std::atomic<bool> stalled_ = false;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::vector<std::unique_ptr<grpc::Service>> worker_services_;
  std::unique_ptr<grpc::Server> client_server_;
  std::unique_ptr<grpc::Server> worker_server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      storage::Store* store,
                                                      schedule::SchedulerThread* scheduler) {
  auto server = std::make_unique<GrpcServer>(options, store, scheduler);
  if (const absl::Status started = server->Start(options); !started.ok()) return started;
  return server;
}

}  // namespace ablate::service
