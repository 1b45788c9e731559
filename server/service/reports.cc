// The Reports service.
#include "server/service/reports.h"

#include "ablate/v1/report.grpc.pb.h"
#include "server/service/export.h"

namespace ablate::service {
namespace {

class ReportsService final : public v1::Reports::CallbackService {
 public:
  explicit ReportsService(Backend* backend) : backend_(backend) {}

  grpc::ServerWriteReactor<v1::FileChunk>* Export(grpc::CallbackServerContext*,
                                                  const v1::ExportRequest* request) override {
    return (new ExportReactor(backend_, request))->Begin();
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeReportsService(Backend* backend) {
  return std::make_unique<ReportsService>(backend);
}

}  // namespace ablate::service
