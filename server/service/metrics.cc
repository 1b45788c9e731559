// The Metrics service.
#include "server/service/metrics.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/metric.grpc.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/service/call.h"
#include "server/service/compare.h"
#include "server/service/limits.h"
#include "server/service/names.h"
#include "server/service/page.h"
#include "server/service/query_metrics.h"

namespace ablate::service {
namespace {

using Keys = absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>>;

Keys KeysOf(storage::Store* store, const std::string& parent) {
  if (absl::StartsWith(parent, "runs/")) {
    const auto run = FindRun(store, parent, "parent");
    return run.ok() ? store->RunKeys(*run) : Keys(run.status());
  }
  const auto experiment = FindExperiment(store, parent, "parent");
  return experiment.ok() ? store->ExperimentKeys(*experiment) : Keys(experiment.status());
}

absl::Status List(const Backend& backend, const v1::ListMetricsRequest& request,
                  v1::ListMetricsResponse* response) {
  Keys keys = KeysOf(backend.store, request.parent());
  if (!keys.ok()) return keys.status();
  std::sort(keys->begin(), keys->end());
  const auto size = PageSize(request.page_size(), std::numeric_limits<int32_t>::max());
  if (!size.ok()) return size.status();
  const std::string list = absl::StrCat("metrics of ", request.parent());
  const auto after = PagePosition(list, request.page_token());
  if (!after.ok()) return after.status();
  Room room(kPageBytes);
  std::string last;
  for (const auto& [key, count] : *keys) {
    if (key <= *after) continue;
    v1::MetricInfo metric;
    metric.set_key(key);
    metric.set_count(count);
    const bool full = static_cast<uint32_t>(response->metrics_size()) == *size;
    if (full || !room.Take(metric.ByteSizeLong() + 8)) {
      response->set_next_page_token(PageToken(list, last));
      break;
    }
    *response->add_metrics() = std::move(metric);
    last = key;
  }
  return absl::OkStatus();
}

absl::Status CompareSettings(const Backend& backend, const v1::CompareRequest& request,
                             const Cancelled& cancelled, v1::Comparison* response) {
  auto compared = CompareGrid(backend.store, request, {cancelled});
  if (!compared.ok()) return compared.status();
  const absl::Status windows = AddWindows(backend.store, cancelled, &*compared);
  if (!windows.ok()) return windows;
  auto message = ToMessage(*compared);
  if (!message.ok()) return message.status();
  *response = *std::move(message);
  return absl::OkStatus();
}

class MetricsService final : public v1::Metrics::CallbackService {
 public:
  explicit MetricsService(Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ListMetrics(grpc::CallbackServerContext* context,
                                        const v1::ListMetricsRequest* request,
                                        v1::ListMetricsResponse* response) override {
    return Answer(backend_->pool, context,
                  [this, request, response] { return List(*backend_, *request, response); });
  }

  grpc::ServerWriteReactor<v1::Series>* QueryMetrics(
      grpc::CallbackServerContext* context, const v1::QueryMetricsRequest* request) override {
    return (new QueryMetricsReactor(backend_, context, request))->Begin();
  }

  grpc::ServerUnaryReactor* Compare(grpc::CallbackServerContext* context,
                                    const v1::CompareRequest* request,
                                    v1::Comparison* response) override {
    return Answer(backend_->pool, context, [this, context, request, response] {
      return CompareSettings(
          *backend_, *request, [context] { return context->IsCancelled(); }, response);
    });
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeMetricsService(Backend* backend) {
  return std::make_unique<MetricsService>(backend);
}

}  // namespace ablate::service
