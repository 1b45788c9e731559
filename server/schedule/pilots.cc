#include "server/schedule/pilots.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/schedule/messages.h"
#include "server/schedule/scheduler.h"
#include "server/schedule/worker_names.h"

namespace ablate::schedule {
namespace {

namespace v1 = worker::v1;

constexpr uint32_t kMaxPilots = 1'000;  // of a cluster
constexpr uint32_t kMaxLanesOfPilot = 4096;
constexpr size_t kMaxClusterName = 40;
constexpr size_t kMaxWorkerName = 128;
constexpr size_t kMaxReason = 200;
constexpr int kFailuresInARow = 3;
constexpr absl::Duration kFirstBackOff = absl::Minutes(1);
constexpr absl::Duration kLongestBackOff = absl::Minutes(30);

bool IsClusterName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxClusterName &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

// Returns true for CLUSTER-REST where REST has no hyphen: a cluster's name may have some.
bool IsPilotOf(absl::string_view worker, absl::string_view cluster) {
  return absl::ConsumePrefix(&worker, cluster) && absl::ConsumePrefix(&worker, "-") &&
         !worker.empty() && !absl::StrContains(worker.substr(0, worker.find('@')), '-');
}

absl::Status CheckPilot(const v1::Pilot& pilot, absl::string_view cluster) {
  const bool named = IsPilotOf(pilot.worker(), cluster) &&
                     pilot.worker().size() <= kMaxWorkerName && !IsElsewhere(pilot.worker()) &&
                     !text::HasControlCharacter(pilot.worker());
  if (!named) {
    return WrongField(
        "pilots.worker", reflect::Quoted(pilot.worker()),
        absl::StrCat("a name that begins with ", cluster, "-, without @ or another hyphen"));
  }
  if (pilot.reason().size() > kMaxReason || text::HasControlCharacter(pilot.reason())) {
    return WrongField("pilots.reason", absl::StrCat(pilot.reason().size(), " bytes"),
                      absl::StrCat("at most ", kMaxReason, " printable ones"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPilots(const v1::SyncPilotsRequest& request) {
  if (!IsClusterName(request.cluster())) {
    return WrongField("cluster", reflect::Quoted(request.cluster()),
                      absl::StrCat("1 to ", kMaxClusterName, " letters, digits, _ and -"));
  }
  if (request.max() < 1 || request.max() > kMaxPilots) {
    return WrongField("max", absl::StrCat(request.max()), absl::StrCat("1 to ", kMaxPilots));
  }
  if (request.min() > request.max()) {
    return WrongField("min", absl::StrCat(request.min()),
                      absl::StrCat("at most max, ", request.max()));
  }
  if (request.device_kind() != "cpu" && request.device_kind() != "cuda") {
    return WrongField("device_kind", reflect::Quoted(request.device_kind()), "cpu or cuda");
  }
  if (request.lanes() > kMaxLanesOfPilot) {
    return WrongField("lanes", absl::StrCat(request.lanes()),
                      absl::StrCat("at most ", kMaxLanesOfPilot));
  }
  if (static_cast<uint32_t>(request.pilots_size()) > kMaxPilots) {
    return WrongField("pilots", absl::StrCat(request.pilots_size()),
                      absl::StrCat("at most ", kMaxPilots));
  }
  std::set<absl::string_view> names;
  for (const v1::Pilot& pilot : request.pilots()) {
    RETURN_IF_ERROR(CheckPilot(pilot, request.cluster()));
    if (!names.insert(pilot.worker()).second) {
      return WrongField("pilots.worker", absl::StrCat("twice ", pilot.worker()), "distinct names");
    }
  }
  return absl::OkStatus();
}

void Pilots::Note(const v1::SyncPilotsRequest& request, const PilotWork& work, absl::Duration now,
                  Cluster* cluster) {
  std::map<std::string, Pilot, std::less<>> before = std::move(cluster->pilots);
  cluster->pilots.clear();
  for (const v1::Pilot& reported : request.pilots()) {
    const auto known = before.find(reported.worker());
    Pilot& pilot = cluster->pilots[reported.worker()];
    if (known != before.end()) pilot = known->second;
    if (pilot.since == 0) pilot.since = absl::ToUnixMicros(absl::Now());
    pilot.pending = reported.pending();
    pilot.reason = reported.reason();
    const bool good = work.worked.count(reported.worker()) > 0;
    if (good && pilot.since > cluster->failed_at) cluster->failures = 0;
  }
  bool failed = false;
  for (const auto& [worker, pilot] : before) {
    if (cluster->pilots.count(worker) > 0 || pilot.withdrawn) continue;
    // One that found no run left is as good as one that had some.
    failed = work.worked.count(worker) == 0 && work.queued_lanes > 0;
    cluster->failures = failed ? cluster->failures + 1 : 0;
    if (failed) cluster->failed_at = absl::ToUnixMicros(absl::Now());
  }
  if (cluster->failures < kFailuresInARow) {
    cluster->back_off = absl::ZeroDuration();
    cluster->start_after = now;
  } else if (failed) {
    cluster->back_off = std::clamp(2 * cluster->back_off, kFirstBackOff, kLongestBackOff);
    cluster->start_after = now + cluster->back_off;
  }
}

absl::StatusOr<v1::SyncPilotsResponse> Pilots::Sync(const std::string& user,
                                                    const v1::SyncPilotsRequest& request,
                                                    const PilotWork& work, absl::Duration now) {
  const std::string key = absl::StrCat(request.cluster(), "@", user);
  if (clusters_.count(key) == 0 && clusters_.size() >= kMaxClusters) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many clusters; expected at most ", kMaxClusters));
  }
  Cluster& cluster = clusters_[key];
  cluster.device_kind = request.device_kind();
  cluster.reported_at = now;
  v1::SyncPilotsResponse orders;
  cluster.trouble = reflect::ShortText(request.trouble());
  if (!cluster.trouble.empty()) return orders;  // what the cluster has isn't known
  Note(request, work, now, &cluster);
  const uint64_t lanes = std::max(work.lanes, 1u);
  const uint64_t useful = work.busy + (work.queued_lanes + lanes - 1) / lanes;
  const auto wanted =
      static_cast<uint32_t>(std::clamp<uint64_t>(useful, request.min(), request.max()));
  uint32_t there = static_cast<uint32_t>(cluster.pilots.size());
  for (auto at = cluster.pilots.rbegin(); at != cluster.pilots.rend() && there > wanted; ++at) {
    if (!at->second.pending) continue;
    at->second.withdrawn = true;
    orders.add_end(at->first);
    --there;
  }
  if (there < wanted && now < cluster.start_after) {
    orders.set_why(absl::StrCat(
        cluster.failures, " pilots in a row ended before they had a run; the next start in ",
        absl::FormatDuration(absl::Ceil(cluster.start_after - now, absl::Seconds(1)))));
  } else if (there < wanted) {
    // After failures one shows if the next ones would work.
    orders.set_start(cluster.failures < kFailuresInARow ? wanted - there : 1);
  }
  if (useful > request.max() && orders.why().empty()) {
    orders.set_why(absl::StrCat("the queue could use more than ", request.max()));
  }
  return orders;
}

void Pilots::Forget(absl::Duration now) {
  std::erase_if(clusters_,
                [now](const auto& named) { return now - named.second.reported_at > kForgotten; });
}

std::vector<PendingPilot> Pilots::Pending() const {
  std::vector<PendingPilot> pending;
  for (const auto& [key, cluster] : clusters_) {
    const std::string user(UserOf(key)), name = key.substr(0, key.size() - user.size() - 1);
    for (const auto& [worker, pilot] : cluster.pilots) {
      if (!pilot.pending) continue;
      pending.push_back({user.empty() ? worker : absl::StrCat(worker, "@", user), name,
                         cluster.device_kind, pilot.reason, pilot.since});
    }
  }
  return pending;
}

std::map<std::string, std::string> Pilots::Failing() const {
  std::map<std::string, std::string> failing;
  for (const auto& [key, cluster] : clusters_) {
    if (!cluster.trouble.empty()) {
      failing[key] = cluster.trouble;
    } else if (cluster.failures >= kFailuresInARow) {
      failing[key] = absl::StrCat(cluster.failures, " pilots in a row ended before they had a run");
    }
  }
  return failing;
}

PilotWork Scheduler::WorkForPilots(const std::string& user, absl::string_view cluster,
                                   absl::string_view device_kind,
                                   const std::vector<storage::QueuedLanes>& queued,
                                   const storage::DeviceShares& shares) const {
  PilotWork work;
  std::set<std::string> trainers;  // of the pilots
  for (const auto& [name, worker] : workers_) {
    const bool is_pilot = IsOfUser(name, user) && (cluster.empty() || IsPilotOf(name, cluster)) &&
                          worker.device_kind == device_kind && !worker.analysis;
    if (!is_pilot) continue;
    for (const auto& [trainer, environment] : worker.trainers) trainers.insert(trainer);
    if (worker.session != 0) work.lanes = std::max(work.lanes, worker.lanes);
    if (worker.session != 0 && !worker.leases.empty()) ++work.busy;
    if (worker.worked) work.worked.insert(name.substr(0, name.find('@')));
  }
  std::map<std::string, int64_t> allowed;  // lanes that a user may still have
  for (const storage::QueuedLanes& lanes : queued) {
    // Before the first pilot has attached, nobody knows what they can train.
    if (!trainers.empty() && trainers.count(lanes.trainer) == 0) continue;
    const auto most = options_.max_lanes ? options_.max_lanes(lanes.user) : std::nullopt;
    const auto share = shares.find(lanes.user);
    const int64_t has = share == shares.end() ? 0 : share->second.training;
    int64_t& rest = allowed.try_emplace(lanes.user, most.value_or(INT64_MAX) - has).first->second;
    const int64_t wanted =
        std::clamp<int64_t>(static_cast<int64_t>(lanes.lanes), 0, std::max<int64_t>(rest, 0));
    rest -= wanted;
    work.queued_lanes += static_cast<uint64_t>(wanted);
  }
  if (draining_) work.queued_lanes = 0;
  return work;
}

absl::StatusOr<v1::SyncPilotsResponse> Scheduler::SyncPilots(
    const std::string& user, const v1::SyncPilotsRequest& request,
    const std::vector<storage::QueuedLanes>& queued, const storage::DeviceShares& shares) {
  RETURN_IF_ERROR(CheckPilots(request));
  PilotWork work = WorkForPilots(user, request.cluster(), request.device_kind(), queued, shares);
  if (request.lanes() > 0) work.lanes = request.lanes();
  return pilots_.Sync(user, request, work, clock_->Now());
}

}  // namespace ablate::schedule
