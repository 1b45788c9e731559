// The Workers service.
#include "server/service/workers.h"

#include <vector>

#include "ablate/v1/worker.grpc.pb.h"
#include "server/service/call.h"
#include "server/service/convert.h"

namespace ablate::service {
namespace {

class WorkersService final : public v1::Workers::CallbackService {
 public:
  explicit WorkersService(Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest*,
                                        v1::ListWorkersResponse* response) override {
    return Answer(backend_->pool, context, [this, response] {
      std::vector<schedule::WorkerInfo> workers;
      backend_->scheduler->Run(
          [&workers](schedule::Scheduler& scheduler) { workers = scheduler.Workers(); });
      for (const schedule::WorkerInfo& worker : workers) {
        *response->add_workers() = ToProto(worker, backend_->store->stalled());
      }
      return absl::OkStatus();
    });
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkersService(Backend* backend) {
  return std::make_unique<WorkersService>(backend);
}

}  // namespace ablate::service
