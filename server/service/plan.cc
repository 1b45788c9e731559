// What an experiment would do: its cells, the runs behind them, which of those exist, what the rest
// costs.
#include "server/service/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "process/machine.h"
#include "server/engine/trainer.h"
#include "server/service/document_facts.h"
#include "server/service/names.h"

namespace ablate::service {
namespace {

constexpr double kMuchOfDisk = .8;  // from here on, an experiment's size is worth a note

struct Devices {
  bool cuda = false;                                 // a GPU worker is known
  uint32_t lanes = 0;                                // of all workers that train
  std::map<std::string, spec::DeviceMemory> memory;  // as spec::Surroundings'
};

Devices KnownDevices(schedule::SchedulerThread* scheduler) {
  Devices devices;
  std::set<std::string> unknown;  // kinds
  scheduler->Run([&devices, &unknown](schedule::Scheduler& inside) {
    for (const schedule::WorkerInfo& worker : inside.Workers()) {
      if (worker.analysis) continue;
      devices.cuda = devices.cuda || worker.device_kind == "cuda";
      devices.lanes += worker.lanes;
      // Workers of older versions do not say; then nothing is known of their kind.
      spec::DeviceMemory& largest = devices.memory[worker.device_kind];
      if (worker.memory_bytes == 0) unknown.insert(worker.device_kind);
      if (worker.memory_bytes > largest.bytes) largest = {worker.memory_bytes, worker.lanes};
    }
  });
  for (const std::string& kind : unknown) devices.memory.erase(kind);
  if (devices.lanes > 0) return devices;
  // Before the first worker has come, it is taken to be on this machine.
  devices.lanes = std::max(std::thread::hardware_concurrency(), 1u);
  if (const uint64_t bytes = process::UsableMemory(); bytes > 0) {
    devices.memory["cpu"] = {bytes, devices.lanes};
  }
  return devices;
}

absl::StatusOr<spec::DatasetFacts> LookUpDataset(storage::Store* store, absl::string_view name) {
  const absl::StatusOr<storage::DatasetRecord> record = FindDataset(store, name, "dataset");
  if (!record.ok()) return record.status();
  absl::StatusOr<DocumentLengths> lengths = LengthsOf(store, *record);
  if (!lengths.ok()) return lengths.status();
  return spec::DatasetFacts{record->id,         record->sha256,   record->documents,
                            record->characters, lengths->longest, std::move(lengths->counts)};
}

// Fills in runs and run_of_cell; returns the cost of each run.
std::vector<RunCost> CollectRuns(Plan* plan) {
  std::map<std::string, size_t> index;
  std::vector<RunCost> costs;
  for (const spec::ResolvedCell& cell : plan->resolution.cells) {
    const auto [place, is_new] = index.emplace(cell.fingerprint, plan->runs.size());
    plan->run_of_cell.push_back(place->second);
    if (!is_new) continue;
    plan->runs.push_back(ToRun(cell));
    costs.push_back(
        {cell.shape, plan->runs.back().steps, cell.flops_per_step, cell.bytes, cell.resume_bytes});
  }
  return costs;
}

bool IsReusable(const storage::KnownRun& known) {
  return !known.run.empty() && known.state != storage::RunState::kFailed &&
         known.state != storage::RunState::kCancelled;
}

spec::Problem OverLimit(const std::string& field, const std::string& limit,
                        const std::string& needed, size_t runs) {
  return reflect::MakeProblem(field, limit,
                              absl::StrCat("training ", runs, runs == 1 ? " run" : " runs",
                                           " needs about ", needed, ", more than ", limit),
                              absl::StrCat("at least ", needed, ", or a smaller experiment"));
}

void CheckLimits(size_t trained, Plan* plan) {
  const v1::Limits& limits = plan->resolution.spec.limits();
  const Cost& cost = plan->cost;
  if (limits.has_device_time()) {
    const absl::Duration limit = absl::Seconds(limits.device_time().seconds()) +
                                 absl::Nanoseconds(limits.device_time().nanos());
    if (cost.device_time > limit) {
      plan->resolution.problems.push_back(OverLimit(
          "limits.device_time", google::protobuf::util::TimeUtil::ToString(limits.device_time()),
          absl::StrCat(absl::ToInt64Seconds(absl::Ceil(cost.device_time, absl::Seconds(1))), "s"),
          trained));
    }
  }
  if (limits.has_bytes() && cost.bytes > limits.bytes()) {
    plan->resolution.problems.push_back(
        OverLimit("limits.bytes", absl::StrCat(limits.bytes()), absl::StrCat(cost.bytes), trained));
  }
}

std::string Megabytes(uint64_t bytes) { return absl::StrCat((bytes + 999'999) / 1'000'000, " MB"); }

// What is stored while other experiments train is not known: the estimate is against what is free
// now.
absl::Status CheckRoom(const storage::Store& store, Plan* plan) {
  const absl::StatusOr<uint64_t> free = store.FreeBytes();
  if (!free.ok()) return free.status();
  const uint64_t needed = plan->cost.bytes;
  if (needed == 0) return absl::OkStatus();
  const std::string what = absl::StrCat("the experiment needs about ", Megabytes(needed), ", and ",
                                        store.folder(), " has ", Megabytes(*free), " free");
  if (needed > *free) {
    plan->no_room = absl::StrCat(what, ": free some, or make it smaller");
  } else if (static_cast<double>(needed) > kMuchOfDisk * static_cast<double>(*free)) {
    plan->resolution.notes.push_back(what);
  }
  return absl::OkStatus();
}

}  // namespace

storage::NewRun ToRun(const spec::ResolvedCell& cell) {
  storage::NewRun run;
  run.fingerprint = cell.fingerprint;
  run.trajectory = cell.trajectory;
  run.seed = cell.seed;
  run.steps = cell.run.spec().training().steps();
  run.parameters = cell.parameters;
  run.device_kind = cell.device_kind;
  run.shape = cell.shape;
  run.spec = cell.run.SerializeAsString();
  run.dataset_blob = cell.dataset_sha256;
  run.numerics_version = engine::kNumericsVersion;
  return run;
}

absl::StatusOr<Plan> MakePlan(const Backend& backend, v1::CreateExperimentRequest* request) {
  const Devices devices = KnownDevices(backend.scheduler);
  spec::Surroundings surroundings;
  surroundings.cuda = devices.cuda;
  surroundings.memory = devices.memory;
  surroundings.find_dataset = [&backend](absl::string_view name) {
    return LookUpDataset(backend.store, name);
  };
  Plan plan;
  plan.resolution =
      spec::Resolve(std::move(*request->mutable_spec()),
                    {request->overrides().begin(), request->overrides().end()}, surroundings);
  if (!plan.resolution.problems.empty()) return plan;

  const std::vector<RunCost> costs = CollectRuns(&plan);
  absl::StatusOr<std::vector<storage::KnownRun>> known = backend.store->LookUpRuns(plan.runs);
  if (!known.ok()) return known.status();
  plan.known = *std::move(known);
  std::vector<RunCost> trained;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    plan.reused.push_back(!request->fresh() && IsReusable(plan.known[i]));
    if (!plan.reused.back()) trained.push_back(costs[i]);
  }
  const absl::StatusOr<Cost> cost = EstimateCost(
      trained,
      [&backend](absl::string_view shape) { return backend.store->MeasuredStepTime(shape); },
      devices.lanes);
  if (!cost.ok()) return cost.status();
  plan.cost = *cost;
  CheckLimits(trained.size(), &plan);
  if (absl::Status room = CheckRoom(*backend.store, &plan); !room.ok()) return room;
  return plan;
}

}  // namespace ablate::service
