// The Reports service.
#include "server/service/reports.h"

#include "ablate/v1/report.grpc.pb.h"
#include "server/service/call.h"
#include "server/service/export.h"
#include "server/service/render_figure.h"
#include "server/service/render_report.h"
#include "server/service/render_table.h"

namespace ablate::service {
namespace {

class ReportsService final : public v1::Reports::CallbackService {
 public:
  explicit ReportsService(Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* RenderTable(grpc::CallbackServerContext* context,
                                        const v1::RenderTableRequest* request,
                                        v1::RenderTableResponse* response) override {
    return Answer(backend_->pool, context, [this, context, request, response] {
      return service::RenderTable(
          backend_->store, *request, [context] { return context->IsCancelled(); }, response);
    });
  }

  grpc::ServerUnaryReactor* RenderFigure(grpc::CallbackServerContext* context,
                                         const v1::RenderFigureRequest* request,
                                         v1::RenderFigureResponse* response) override {
    return Answer(backend_->pool, context, [this, context, request, response] {
      return service::RenderFigure(
          backend_, *request, [context] { return context->IsCancelled(); }, response);
    });
  }

  grpc::ServerWriteReactor<v1::FileChunk>* RenderReport(
      grpc::CallbackServerContext* context, const v1::RenderReportRequest* request) override {
    return (new RenderReportReactor(backend_, context, request))->Begin();
  }

  grpc::ServerWriteReactor<v1::FileChunk>* Export(grpc::CallbackServerContext* context,
                                                  const v1::ExportRequest* request) override {
    return (new ExportReactor(backend_, context, request))->Begin();
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeReportsService(Backend* backend) {
  return std::make_unique<ReportsService>(backend);
}

}  // namespace ablate::service
