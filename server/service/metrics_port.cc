#include "server/service/metrics_port.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ablate::service {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using MetricLabels = std::vector<ClientMetric::Label>;

// Makes one family; each call of Add is a line.
class Family {
 public:
  Family(std::string name, std::string help, MetricType type = MetricType::Gauge) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }
  Family& Add(double value, MetricLabels labels = {}) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    return *this;
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

MetricFamily RunFamily(const storage::RunStates& runs) {
  Family family("ablate_runs", "Stored runs by state");
  const std::pair<const char*, uint64_t> states[] = {
      {"QUEUED", runs.queued},     {"LEASED", runs.leased}, {"DONE", runs.done},
      {"DIVERGED", runs.diverged}, {"FAILED", runs.failed}, {"CANCELLED", runs.cancelled}};
  for (const auto& [state, count] : states) {
    family.Add(static_cast<double>(count), {{"state", state}});
  }
  return family.Take();
}

void AddWorkers(const std::vector<schedule::WorkerInfo>& workers,
                std::vector<MetricFamily>* families) {
  std::map<std::pair<std::string, std::string>, int> attached;  // by role and device
  std::map<std::string, double> lanes, busy;                    // by device
  for (const schedule::WorkerInfo& worker : workers) {
    if (!worker.attached) continue;
    ++attached[{worker.analysis ? "analysis" : "train", worker.device_kind}];
    if (worker.analysis) continue;
    lanes[worker.device_kind] += worker.lanes;
    busy[worker.device_kind] += worker.busy_lanes;
  }
  Family count("ablate_workers", "Attached workers");
  for (const auto& [of, number] : attached) {
    count.Add(number, {{"role", of.first}, {"device", of.second}});
  }
  Family all("ablate_lanes", "Runs that attached workers can train at one time");
  Family used("ablate_busy_lanes", "Of these, those that train a run");
  for (const auto& [device, number] : lanes) all.Add(number, {{"device", device}});
  for (const auto& [device, number] : busy) used.Add(number, {{"device", device}});
  families->insert(families->end(), {count.Take(), all.Take(), used.Take()});
}

void AddWrites(const storage::WriteCounts& counts, std::vector<MetricFamily>* families) {
  const struct {
    const char* name;
    const char* help;
    double value;
    MetricType type = MetricType::Counter;
  } rows[] = {
      {"ablate_points_total", "Values of metrics that were stored",
       static_cast<double>(counts.points)},
      {"ablate_leases_lost_total", "Leases whose worker was lost",
       static_cast<double>(counts.losses)},
      {"ablate_commits_total", "Commits of the database", static_cast<double>(counts.commits)},
      {"ablate_commit_seconds_total", "Time of all commits, each with its sync of the disk",
       counts.commit_seconds},
      {"ablate_commit_seconds_max", "Time of the longest commit", counts.longest_commit,
       MetricType::Gauge}};
  for (const auto& row : rows) {
    families->push_back(Family(row.name, row.help, row.type).Add(row.value).Take());
  }
}

class State final : public prometheus::Collectable {
 public:
  State(storage::Store* store, schedule::SchedulerThread* scheduler)
      : store_(store), scheduler_(scheduler) {}

  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families;
    if (const auto runs = store_->CountRuns(); runs.ok()) families.push_back(RunFamily(*runs));
    Family queued("ablate_queued_lanes", "Lanes that the queued runs of a user take");
    for (const char* device : {"cpu", "cuda"}) {
      const auto lanes = store_->CountQueuedLanes(device);
      if (!lanes.ok()) continue;
      for (const storage::QueuedLanes& each : *lanes) {
        queued.Add(static_cast<double>(each.lanes),
                   {{"user", each.user}, {"device", device}, {"trainer", each.trainer}});
      }
    }
    families.push_back(queued.Take());
    std::vector<schedule::WorkerInfo> workers;
    std::map<std::string, double> pilots;  // by cluster
    scheduler_->Run([&](schedule::Scheduler& scheduler) {
      workers = scheduler.Workers();
      for (const schedule::PendingPilot& pilot : scheduler.pilots().Pending())
        ++pilots[pilot.cluster];
    });
    AddWorkers(workers, &families);
    Family pending("ablate_pending_pilots", "Workers that another scheduler is to start");
    for (const auto& [cluster, count] : pilots) pending.Add(count, {{"cluster", cluster}});
    families.push_back(pending.Take());
    AddWrites(store_->write_counts(), &families);
    if (const auto free = store_->FreeBytes(); free.ok()) {
      families.push_back(Family("ablate_disk_free_bytes", "Room for new data")
                             .Add(static_cast<double>(*free))
                             .Take());
    }
    families.push_back(Family("ablate_stalled", "1 if nothing can be stored, as on a full disk")
                           .Add(store_->stalled().empty() ? 0 : 1)
                           .Take());
    return families;
  }

 private:
  storage::Store* const store_;
  schedule::SchedulerThread* const scheduler_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Listen(
    int port, storage::Store* store, schedule::SchedulerThread* scheduler) {
  std::unique_ptr<prometheus::Exposer> exposer;
  try {
    exposer = std::make_unique<prometheus::Exposer>(absl::StrCat("127.0.0.1:", port), 1);
  } catch (const std::exception& error) {  // the library's way to say that it can't listen
    return absl::UnavailableError(absl::StrCat("can't serve metrics at 127.0.0.1:", port,
                                               ": another program may use that port (",
                                               error.what(), ")"));
  }
  auto state = std::make_shared<State>(store, scheduler);
  exposer->RegisterCollectable(state);
  return std::unique_ptr<MetricsPort>(new MetricsPort(std::move(exposer), std::move(state)));
}

MetricsPort::MetricsPort(std::unique_ptr<prometheus::Exposer> exposer,
                         std::shared_ptr<prometheus::Collectable> collectable)
    : collectable_(std::move(collectable)), exposer_(std::move(exposer)) {}

MetricsPort::~MetricsPort() = default;

int MetricsPort::port() const { return exposer_->GetListeningPorts().front(); }

}  // namespace ablate::service
