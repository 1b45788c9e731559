#include "client/cluster/launcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/output/format.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

// Started in one round, so that a scheduler isn't flooded.
constexpr uint32_t kStartsInARound = 25;
constexpr size_t kReasonBytes = 150;  // a list of nodes may be long

}  // namespace

PilotPool::PilotPool(PoolOptions options, Launcher* launcher, SyncPilots sync,
                     std::function<std::string()> random_name,
                     std::function<void(const std::string& line)> say)
    : options_(std::move(options)),
      launcher_(launcher),
      sync_(std::move(sync)),
      random_name_(std::move(random_name)),
      say_(std::move(say)) {}

void PilotPool::Say(const std::string& line) {
  if (std::exchange(said_, line) != line) say_(line);
}

absl::Status PilotPool::Round() {
  auto listed = launcher_->List();
  worker::v1::SyncPilotsRequest request;
  if (listed.ok()) {
    pilots_ = *std::move(listed);
  } else {
    request.set_trouble(reflect::ShortText(listed.status().message()));
  }
  request.set_cluster(options_.cluster);
  request.set_min(options_.min);
  request.set_max(options_.max);
  request.set_device_kind(options_.device_kind);
  request.set_lanes(options_.lanes);
  for (const LaunchedPilot& pilot : pilots_) {
    worker::v1::Pilot* reported = request.add_pilots();
    reported->set_worker(pilot.worker);
    reported->set_pending(pilot.pending);
    reported->set_reason(reflect::ShortText(pilot.reason, kReasonBytes));
  }
  const auto orders = sync_(request);
  absl::Status status = listed.status();
  status.Update(orders.status());
  if (status.ok()) status = Follow(*orders);
  if (!status.ok()) Say(std::string(status.message()));
  return status;
}

absl::Status PilotPool::Follow(const worker::v1::SyncPilotsResponse& orders) {
  absl::Status status;
  uint32_t ended = 0, started = 0;
  for (const std::string& worker : orders.end()) {
    const auto pilot = std::find_if(pilots_.begin(), pilots_.end(),
                                    [&worker](const auto& one) { return one.worker == worker; });
    if (pilot == pilots_.end()) continue;
    status.Update(launcher_->End(*pilot));
    ++ended;
  }
  const uint32_t wanted = std::min(orders.start(), kStartsInARound);
  while (status.ok() && started < wanted) {
    const bool stays = pilots_.size() + started < options_.min;
    status = launcher_->Start(absl::StrCat(options_.cluster, "-", random_name_()), stays);
    if (status.ok()) ++started;
  }
  const auto pending = std::count_if(pilots_.begin(), pilots_.end(),
                                     [](const LaunchedPilot& pilot) { return pilot.pending; });
  std::string line = absl::StrCat(Count(pilots_.size(), "pilot"), ", ", pending, " pending");
  if (started > 0) absl::StrAppend(&line, "; started ", started);
  if (ended > 0) absl::StrAppend(&line, "; withdrew ", ended);
  if (!orders.why().empty()) absl::StrAppend(&line, "; ", orders.why());
  Say(line);
  return status;
}

}  // namespace ablate::client
