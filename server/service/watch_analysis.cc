// WatchAnalysis.
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "ablate/v1/analysis.pb.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "grpcpp/support/server_callback.h"
#include "server/lookup/names.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/services.h"
#include "server/service/watch_stream.h"

namespace ablate::service {
namespace {

bool HasEnded(const v1::Analysis& analysis) {
  return analysis.state() != v1::AnalysisState::QUEUED &&
         analysis.state() != v1::AnalysisState::RUNNING;
}

class AnalysisWatch final : public WatchStream<v1::Analysis> {
 public:
  // The pointers outlive the call.
  AnalysisWatch(Backend* backend, grpc::CallbackServerContext* context,
                const v1::WatchAnalysisRequest* request)
      : WatchStream(backend->Stream(context, &backend->analysis_watches)),
        backend_(backend),
        context_(context),
        request_(request) {}

 private:
  absl::StatusOr<NextRound> Round(std::deque<v1::Analysis>* batch) override {
    if (id_.empty()) {
      ASSIGN_OR_RETURN(const auto view, backend_->FindView(*context_));
      ASSIGN_OR_RETURN(id_, lookup::FindAnalysis(view, request_->name(), "name"));
    }
    ASSIGN_OR_RETURN(const auto record, backend_->store->GetAnalysis(id_));
    v1::Analysis now = ToProto(record, backend_->analyses->Progress(record));
    NextRound next;
    next.final = HasEnded(now);
    std::string bytes = now.SerializeAsString();
    if (bytes == told_) return next;
    told_ = std::move(bytes);
    batch->push_back(std::move(now));
    return next;
  }

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchAnalysisRequest* const request_;
  std::string id_;    // empty before the first round
  std::string told_;  // the analysis as last sent
};

}  // namespace

grpc::ServerWriteReactor<v1::Analysis>* StartWatchAnalysis(
    Backend* backend, grpc::CallbackServerContext* context,
    const v1::WatchAnalysisRequest* request) {
  return AnalysisWatch::Begin(std::make_shared<AnalysisWatch>(backend, context, request));
}

}  // namespace ablate::service
