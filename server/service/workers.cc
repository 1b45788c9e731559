// The Workers service.
#include "server/service/workers.h"

#include "ablate/v1/worker.grpc.pb.h"
#include "server/service/convert.h"

namespace ablate::service {
namespace {

class WorkersService final : public v1::Workers::CallbackService {
 public:
  explicit WorkersService(Backend* backend) : backend_(backend) {}

  // Answered on the scheduler's thread: there is nothing to wait for.
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest*,
                                        v1::ListWorkersResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    backend_->scheduler->Post([reactor, response](schedule::Scheduler& scheduler) {
      for (const schedule::WorkerInfo& worker : scheduler.Workers()) {
        *response->add_workers() = ToProto(worker);
      }
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkersService(Backend* backend) {
  return std::make_unique<WorkersService>(backend);
}

}  // namespace ablate::service
