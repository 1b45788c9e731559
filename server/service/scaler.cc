// KEDA's external scaler: how many workers the queue wants, for Kubernetes to start them.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "keda/externalscaler.grpc.pb.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/rpc/call.h"
#include "server/rpc/live_streams.h"
#include "server/service/services.h"
#include "storage/access_store.h"

namespace ablate::service {
namespace {

namespace keda = ::externalscaler;

constexpr char kMetric[] = "ablate-lanes";
constexpr uint32_t kMaxLanesOfWorker = 4096;

// The metadata of a trigger.
struct Trigger {
  std::string user;  // whose workers it starts
  std::string device = "cpu";
  uint32_t lanes = 1;  // of a worker
};

std::string MetadataOf(const keda::ScaledObjectRef& ref, const std::string& key) {
  const auto found = ref.scalermetadata().find(key);
  return found == ref.scalermetadata().end() ? "" : found->second;
}

// KEDA sends no token with its calls, but the metadata of its triggers.
absl::StatusOr<Trigger> ReadTrigger(const Backend& backend, const keda::ScaledObjectRef& ref) {
  if (backend.sharing == nullptr) return absl::FailedPreconditionError("this server isn't shared");
  const std::string token = MetadataOf(ref, "tokenFromEnv");
  if (token.empty()) return absl::UnauthenticatedError("tokenFromEnv: expected a worker's token");
  ASSIGN_OR_RETURN(const storage::Caller caller,
                   backend.sharing->store().Identify(token, absl::Now()));
  if (caller.role != storage::Role::kWorker) {
    return absl::PermissionDeniedError(absl::StrCat("tokenFromEnv: ", caller.user, " has the role ",
                                                    storage::RoleName(caller.role),
                                                    "; expected worker"));
  }
  Trigger trigger;
  trigger.user = caller.user;
  const std::string device = MetadataOf(ref, "device"), lanes = MetadataOf(ref, "lanes");
  if (!device.empty()) trigger.device = device;
  if (trigger.device != "cpu" && trigger.device != "cuda") {
    return lookup::InvalidField("device", absl::StrCat(reflect::Quoted(device), " is unknown"),
                                "cpu or cuda");
  }
  const bool valid = lanes.empty() || (absl::SimpleAtoi(lanes, &trigger.lanes) &&
                                       trigger.lanes >= 1 && trigger.lanes <= kMaxLanesOfWorker);
  if (valid) return trigger;
  return lookup::InvalidField("lanes", absl::StrCat(reflect::Quoted(lanes), " is out of range"),
                              absl::StrCat("1 to ", kMaxLanesOfWorker));
}

// Returns the lanes of the runs that wait and of the trigger's workers that have runs.
absl::StatusOr<int64_t> WantedLanes(const Backend& backend, const Trigger& trigger) {
  ASSIGN_OR_RETURN(const auto queued, backend.store->CountQueuedLanes(trigger.device));
  ASSIGN_OR_RETURN(const auto shares, backend.store->GetShares());
  schedule::PilotWork work;
  backend.scheduler->Run([&](schedule::Scheduler& scheduler) {
    work = scheduler.WorkForPilots(trigger.user, "", trigger.device, queued, shares);
  });
  return static_cast<int64_t>(work.queued_lanes + uint64_t{work.busy} * trigger.lanes);
}

class ScalerService final : public keda::ExternalScaler::CallbackService {
 public:
  explicit ScalerService(Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* IsActive(grpc::CallbackServerContext* context,
                                     const keda::ScaledObjectRef* request,
                                     keda::IsActiveResponse* response) override {
    return Answer(context, *request, [this, response](const Trigger& trigger) -> absl::Status {
      ASSIGN_OR_RETURN(const auto lanes, WantedLanes(*backend_, trigger));
      response->set_result(lanes > 0);
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* GetMetricSpec(grpc::CallbackServerContext* context,
                                          const keda::ScaledObjectRef* request,
                                          keda::GetMetricSpecResponse* response) override {
    return Answer(context, *request, [response](const Trigger& trigger) {
      keda::MetricSpec* spec = response->add_metricspecs();
      spec->set_metricname(kMetric);
      spec->set_targetsize(trigger.lanes);
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context,
                                       const keda::GetMetricsRequest* request,
                                       keda::GetMetricsResponse* response) override {
    return Answer(context, request->scaledobjectref(),
                  [this, response](const Trigger& trigger) -> absl::Status {
                    ASSIGN_OR_RETURN(const auto lanes, WantedLanes(*backend_, trigger));
                    keda::MetricValue* value = response->add_metricvalues();
                    value->set_metricname(kMetric);
                    value->set_metricvalue(lanes);
                    return absl::OkStatus();
                  });
  }

 private:
  // Checks the token before the call may wait for a thread. Few calls at once, because they count
  // for no user.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   const keda::ScaledObjectRef& ref,
                                   std::function<absl::Status(const Trigger&)> work) {
    auto trigger = ReadTrigger(*backend_, ref);
    if (!trigger.ok()) {
      grpc::ServerUnaryReactor* const refused = context->DefaultReactor();
      refused->Finish(lookup::ToGrpc(trigger.status()));
      return refused;
    }
    return rpc::Answer(backend_->pool, context,
                       [this, trigger = *std::move(trigger), work = std::move(work)] {
                         const rpc::LiveCall call(&calls_);
                         return call.accepted().ok() ? work(trigger) : call.accepted();
                       });
  }

  Backend* const backend_;
  rpc::LiveStreams calls_{"calls of a scaler", lookup::Limit(2)};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeScalerService(Backend* backend) {
  return std::make_unique<ScalerService>(backend);
}

}  // namespace ablate::service
