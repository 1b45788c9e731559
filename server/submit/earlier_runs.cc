#include "server/submit/earlier_runs.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/machine.h"
#include "base/status_macros.h"
#include "server/config/program.h"
#include "server/engine/names.h"

namespace ablate::submit {
namespace {

// Returns true if a worker that may train the run can continue from a state made in `environment`,
// as far as known.
bool MayContinue(const Devices& devices, const storage::NewRun& run,
                 const std::string& environment) {
  const auto known = devices.environments.find({run.device_kind, run.trainer});
  if (environment.empty() || known == devices.environments.end()) return true;
  return known->second.count(environment) > 0 || known->second.count("") > 0;
}

// A run that auto could have become, and the one that it became.
struct Alternative {
  storage::NewRun other;
  size_t chosen = 0;  // index of plan.runs
};

// Returns the alternatives of the runs that will be trained from step 0, except those that a cell
// asks for.
std::vector<Alternative> AlternativesOf(const Devices& devices, const Plan& plan) {
  std::set<std::string> planned;
  for (const storage::NewRun& run : plan.runs) planned.insert(run.fingerprint);
  std::vector<Alternative> alternatives;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const size_t run = plan.run_of_cell[i];
    if (plan.reused[run] || plan.first_step[run] > 0) continue;
    if (SavedStep(devices, plan.known[run], plan.runs[run]) > 0) continue;
    for (const spec::OtherRun& other : plan.resolution.cells[i].others) {
      if (!planned.insert(other.fingerprint).second) continue;
      Alternative& alternative = alternatives.emplace_back();
      alternative.chosen = run;
      alternative.other.fingerprint = other.fingerprint;
      alternative.other.growth = other.growth;
      alternative.other.trainer = other.trainer;
      alternative.other.steps = plan.runs[run].steps;
      alternative.other.device_kind = other.device_kind;
    }
  }
  return alternatives;
}

// Returns why runs that are stored from another trainer or device will be trained again.
std::string TrainedAgain(size_t runs, const storage::NewRun& other, const storage::NewRun& chosen) {
  const std::string count =
      absl::StrCat(text::Grouped(runs), runs == 1 ? " run is" : " runs are", " stored from ");
  if (other.trainer == chosen.trainer) {
    return absl::StrCat(count, "device ", other.device_kind, " and will be trained again on ",
                        chosen.device_kind, "; training.device=", other.device_kind,
                        " goes on with them");
  }
  const bool from_torch = other.trainer == engine::NameOf(engine::TrainerKind::kTorch);
  return absl::StrCat(count, "the ", other.trainer, " trainer and will be trained again by ",
                      from_torch ? "native; training.trainer=torch goes on with them"
                                 : "torch, so that one trainer trains them all");
}

// A GPU has a worker of its own for programs.
bool TrainsModels(const schedule::WorkerInfo& worker) {
  return std::any_of(worker.trainers.begin(), worker.trainers.end(),
                     [](const auto& trainer) { return !spec::IsProgramTrainer(trainer.first); });
}

}  // namespace

std::string LaneKind(const std::string& device_kind, absl::string_view trainer) {
  const bool apart = device_kind != "cpu" && spec::IsProgramTrainer(trainer);
  return apart ? absl::StrCat(device_kind, " programs") : device_kind;
}

Devices KnownDevices(schedule::SchedulerThread* scheduler) {
  Devices devices;
  std::set<std::string> unknown;  // kinds
  scheduler->Run([&devices, &unknown](schedule::Scheduler& inside) {
    for (const schedule::WorkerInfo& worker : inside.Workers()) {
      if (worker.analysis || !worker.unusable.empty()) continue;
      devices.lanes[TrainsModels(worker) ? worker.device_kind
                                         : LaneKind(worker.device_kind, spec::kProgramTrainer)] +=
          worker.lanes;
      if (!worker.no_programs.empty()) devices.no_programs[worker.device_kind] = worker.no_programs;
      for (const auto& [trainer, environment] : worker.trainers) {
        if (!worker.attached) break;
        devices.environments[{worker.device_kind, trainer}].insert(environment);
      }
      if (!TrainsModels(worker)) continue;
      devices.cuda = devices.cuda || worker.device_kind == "cuda";
      if (worker.device_kind == "cpu") {
        devices.most_lanes = std::max(devices.most_lanes, worker.lanes);
      }
      // If one worker's is unknown, so is its kind's.
      spec::DeviceMemory& largest = devices.memory[worker.device_kind];
      if (worker.memory_bytes == 0) unknown.insert(worker.device_kind);
      // A GPU's worker begins only as many runs as fit.
      const uint32_t together = worker.device_kind == "cuda" ? 1 : worker.lanes;
      if (worker.memory_bytes > largest.bytes) largest = {worker.memory_bytes, together};
    }
  });
  for (const std::string& kind : unknown) devices.memory.erase(kind);
  if (!devices.lanes.empty()) return devices;
  // Before the first worker has attached, assume one on this machine.
  const uint32_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  devices.lanes["cpu"] = cores;
  if (const uint64_t bytes = process::UsableMemory(); bytes > 0) {
    devices.memory["cpu"] = {bytes, cores};
  }
  return devices;
}

bool IsReusable(const storage::KnownRun& known) {
  return !known.run.empty() && known.state != storage::RunState::kFailed &&
         known.state != storage::RunState::kCancelled;
}

uint32_t ChooseOrigin(const Devices& devices, const storage::KnownRun& known,
                      storage::NewRun* run) {
  for (const storage::ShorterRun& shorter : known.shorter) {
    if (!MayContinue(devices, *run, shorter.environment)) continue;
    run->origin = shorter.run;
    return shorter.steps;
  }
  return 0;
}

uint32_t SavedStep(const Devices& devices, const storage::KnownRun& known,
                   const storage::NewRun& run) {
  const bool usable = known.saved && MayContinue(devices, run, known.saved->environment);
  return usable ? known.saved->step : 0;
}

void NoteOrigins(Plan* plan) {
  std::map<uint32_t, size_t> runs;  // by their first step
  for (const uint32_t step : plan->first_step) {
    if (step > 0) ++runs[step];
  }
  for (const auto& [step, count] : runs) {
    plan->resolution.notes.push_back(
        absl::StrCat(text::Grouped(count),
                     count == 1 ? " run continues from step " : " runs continue from step ",
                     text::Grouped(step), count == 1 ? " of a shorter run" : " of shorter runs"));
  }
}

void NoteLost(Plan* plan) {
  using Loss = std::tuple<uint32_t, uint32_t, std::string>;  // first step, lost step and reason
  std::map<Loss, size_t> runs;
  for (size_t i = 0; i < plan->runs.size(); ++i) {
    const std::optional<storage::LostState>& lost = plan->known[i].lost;
    if (plan->reused[i] || !lost.has_value()) continue;
    ++runs[{plan->first_step[i], lost->steps, lost->why}];
  }
  for (const auto& [loss, count] : runs) {
    const auto& [first, lost, why] = loss;
    plan->resolution.notes.push_back(
        absl::StrCat(text::Grouped(count), count == 1 ? " run starts" : " runs start", " at step ",
                     text::Grouped(first), " instead of step ", text::Grouped(lost),
                     count == 1 ? " of a shorter run" : " of shorter runs",
                     ": the saved training state there ", why));
  }
}

void NoteSaved(size_t runs, Plan* plan) {
  if (runs == 0) return;
  plan->resolution.notes.push_back(absl::StrCat(
      text::Grouped(runs), runs == 1 ? " cancelled run continues from its saved state"
                                     : " cancelled runs continue from their saved states"));
}

absl::Status NoteTrainedAgain(storage::Store* store, const Devices& devices, Plan* plan) {
  std::vector<Alternative> alternatives = AlternativesOf(devices, *plan);
  std::vector<storage::NewRun> others;
  for (const Alternative& alternative : alternatives) others.push_back(alternative.other);
  ASSIGN_OR_RETURN(const std::vector<storage::KnownRun> known, store->LookUpRuns(others));
  // By trainer and device of the stored run, then of the chosen one.
  std::map<std::vector<std::string>, std::vector<const Alternative*>> stored;
  for (size_t i = 0; i < others.size(); ++i) {
    if (!IsReusable(known[i]) && ChooseOrigin(devices, known[i], &others[i]) == 0) continue;
    const storage::NewRun& chosen = plan->runs[alternatives[i].chosen];
    stored[{others[i].trainer, others[i].device_kind, chosen.trainer, chosen.device_kind}]
        .push_back(&alternatives[i]);
  }
  for (const auto& [key, of_key] : stored) {
    plan->resolution.notes.push_back(
        TrainedAgain(of_key.size(), of_key.front()->other, plan->runs[of_key.front()->chosen]));
  }
  return absl::OkStatus();
}

}  // namespace ablate::submit
