#include "server/submit/plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/machine.h"
#include "base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/analysis/document_facts.h"
#include "server/analysis/inputs.h"
#include "server/analysis/times.h"
#include "server/engine/names.h"
#include "server/engine/trainer.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/resolve.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/submit/decidable.h"
#include "server/submit/initial_models.h"
#include "server/submit/quotas.h"
#include "server/submit/table_note.h"

namespace ablate::submit {
namespace {

constexpr double kLargeShareOfDisk = .8;  // beyond this, an experiment's size is worth a note

struct Devices {
  bool cuda = false;                                 // a GPU worker is known
  uint32_t most_lanes = 0;                           // of a worker on cores; 0: unknown
  std::map<std::string, uint32_t> lanes;             // of all workers that train, by kind
  std::map<std::string, spec::DeviceMemory> memory;  // as in spec::Surroundings
  // Environments of the attached training workers, by kind and trainer; "" for an unknown one.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> environments;
};

Devices KnownDevices(schedule::SchedulerThread* scheduler) {
  Devices devices;
  std::set<std::string> unknown;  // kinds
  scheduler->Run([&devices, &unknown](schedule::Scheduler& inside) {
    for (const schedule::WorkerInfo& worker : inside.Workers()) {
      if (worker.analysis || !worker.unusable.empty()) continue;
      devices.cuda = devices.cuda || worker.device_kind == "cuda";
      devices.lanes[worker.device_kind] += worker.lanes;
      if (worker.device_kind == "cpu") {
        devices.most_lanes = std::max(devices.most_lanes, worker.lanes);
      }
      for (const auto& [trainer, environment] : worker.trainers) {
        if (!worker.attached) break;
        devices.environments[{worker.device_kind, trainer}].insert(environment);
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

// Looks a data set up for an experiment that is private to `private_to`, or public if empty. Adds
// an upload that will be deleted unless the experiment uses it to `plan`.
absl::StatusOr<storage::DatasetRecord> LookUpRecord(const lookup::View& view,
                                                    const std::string& private_to,
                                                    absl::string_view name, Plan* plan) {
  absl::StatusOr<storage::DatasetRecord> record = lookup::FindDataset(view, name, "dataset");
  if (!record.ok()) return record;
  if (record->becomes_public && !private_to.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(lookup::DatasetName(record->id),
                     " was uploaded for a public experiment. Upload it as private data"));
  }
  if (!record->private_to.empty() && !record->becomes_public && record->private_to != private_to) {
    return absl::FailedPreconditionError(
        analysis::ForPrivateUse(lookup::DatasetName(record->id), record->private_to));
  }
  if (record->expire_time != 0) plan->uploads.insert(DatasetKey(*record));
  return record;
}

absl::StatusOr<spec::DatasetFacts> LookUpDataset(const lookup::View& view,
                                                 const std::string& private_to,
                                                 absl::string_view name, bool as_text, Plan* plan,
                                                 std::set<std::string>* notes) {
  ASSIGN_OR_RETURN(const storage::DatasetRecord record, LookUpRecord(view, private_to, name, plan));
  if (std::string note = TableNote(view.store, record); !note.empty()) {
    notes->insert(std::move(note));
  }
  ASSIGN_OR_RETURN(engine::DocumentFacts facts, analysis::FactsOf(view.store, record, as_text));
  return spec::DatasetFacts{std::move(facts), record.id, record.sha256, record.kind};
}

// Divides a text into tokens, which the plan keeps.
absl::StatusOr<spec::DatasetFacts> EncodeDataset(const lookup::View& view,
                                                 const std::string& private_to,
                                                 const std::string& text,
                                                 const std::string& tokenizer, bool documents,
                                                 Plan* plan) {
  ASSIGN_OR_RETURN(const auto text_record, LookUpRecord(view, private_to, text, plan));
  ASSIGN_OR_RETURN(const auto tokenizer_record, LookUpRecord(view, private_to, tokenizer, plan));
  ASSIGN_OR_RETURN(EncodedText encoded, EncodeText(view, text_record, tokenizer_record, documents));
  const spec::DatasetFacts facts{encoded.facts, encoded.record.id, encoded.record.sha256,
                                 DatasetKind::kTokens};
  if (encoded.record.expire_time != 0) plan->uploads.insert(DatasetKey(encoded.record));
  plan->encoded.push_back(std::move(encoded));
  return facts;
}

// Gives runs of a private experiment fingerprints of its owner, which alone find and share
// everything stored. Shapes, too, because a measured time would show that somebody had the data.
void KeepPrivate(const std::string& private_to, spec::Resolution* resolution) {
  for (spec::ResolvedCell& cell : resolution->cells) {
    std::vector<std::string*> hashes = {&cell.fingerprint, &cell.trajectory, &cell.growth,
                                        &cell.shape};
    for (spec::OtherRun& other : cell.others) {
      hashes.insert(hashes.end(), {&other.fingerprint, &other.growth});
    }
    for (std::string* hash : hashes) *hash = spec::PrivateTo(private_to, *hash);
  }
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
    plan->runs.back().expected_bytes = cell.bytes;
    costs.push_back({cell.shape, plan->runs.back().steps, cell.flops_per_step, cell.bytes,
                     cell.resume_bytes, !cell.growth.empty(), cell.run.spec().evaluation().every(),
                     cell.evaluation, cell.guessed_speed, cell.device_kind,
                     plan->runs.back().lanes});
  }
  return costs;
}

bool IsReusable(const storage::KnownRun& known) {
  return !known.run.empty() && known.state != storage::RunState::kFailed &&
         known.state != storage::RunState::kCancelled;
}

// Returns true if a worker that may train the run can continue from a state made in `environment`,
// as far as known.
bool MayContinue(const Devices& devices, const storage::NewRun& run,
                 const std::string& environment) {
  const auto known = devices.environments.find({run.device_kind, run.trainer});
  if (environment.empty() || known == devices.environments.end()) return true;
  return known->second.count(environment) > 0 || known->second.count("") > 0;
}

// Selects the longest shorter run that this one may start from. Returns that step; 0 if there is
// none.
uint32_t ChooseOrigin(const Devices& devices, const storage::KnownRun& known,
                      storage::NewRun* run) {
  for (const storage::ShorterRun& shorter : known.shorter) {
    if (!MayContinue(devices, *run, shorter.environment)) continue;
    run->origin = shorter.run;
    return shorter.steps;
  }
  return 0;
}

// Returns the step of the saved state from which a cancelled run continues; 0 if there is none.
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

// Notes runs that train steps again because a shorter run's saved training state is gone.
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

// Notes if an experiment gets another trainer or device than its runs had, because its grid grew or
// shrank, or a GPU came or went; none of their stored results can then be used.
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

// Returns the number of runs per setting of the axes that aren't tuned and seed, of which one is
// selected.
size_t ChoicesOf(const spec::Resolution& resolution) {
  std::set<std::vector<std::string>> choices;
  for (const spec::ResolvedCell& cell : resolution.cells) {
    std::vector<std::string> choice = {absl::StrCat(cell.seed)};
    for (size_t axis = 0; axis < cell.labels.size(); ++axis) {
      const bool tuned = resolution.spec.axes(static_cast<int>(axis)).tune();
      if (!tuned) choice.push_back(cell.labels[axis].second);
    }
    choices.insert(std::move(choice));
  }
  return choices.size();
}

// Counts the DONE analyses of the reused runs, by signature.
absl::StatusOr<std::map<std::string, uint64_t>> StoredAnalyses(storage::Store* store,
                                                               const Plan& plan) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    if (plan.reused[i]) runs.push_back(plan.known[i].run);
  }
  return store->CountDoneAnalyses(runs);
}

// Counts all analyses, and adds the cost of those that aren't stored. `private_to` is PrivateTo's
// result.
absl::Status AddAnalyses(const lookup::View& view, const std::string& private_to, Plan* plan) {
  const std::vector<spec::AskedAnalysis> asked = spec::AskedAnalyses(plan->resolution.spec);
  if (asked.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto stored, StoredAnalyses(view.store, *plan));
  const size_t chosen = ChoicesOf(plan->resolution);
  const FindTimes find = [&](absl::string_view group) {
    return view.store->MeasuredAnalysisTimes(spec::PrivateTo(private_to, group));
  };
  for (size_t i = 0; i < asked.size(); ++i) {
    const size_t runs = asked[i].all ? plan->runs.size() : chosen;
    const size_t count = asked[i].of_runs ? runs * asked[i].analyses_of_a_run() : 1;
    plan->analyses += count;
    const auto signature = analysis::SignatureOf(view, asked[i]);
    if (!signature.ok()) return signature.status();
    const auto done = signature->has_value() ? stored.find(**signature) : stored.end();
    const size_t made = done == stored.end() ? 0 : std::min<size_t>(done->second, count);
    RETURN_IF_ERROR(AddAnalysesCost(count - made, plan->resolution.analyses[i], find, &plan->cost));
  }
  return absl::OkStatus();
}

// Returns "training 128 runs with 224 analyses".
std::string WorkOf(size_t runs, uint64_t analyses) {
  return absl::StrCat("training ", runs, runs == 1 ? " run" : " runs",
                      analyses > 0 ? absl::StrCat(" with ", analyses, " analyses") : "");
}

spec::Problem OverLimit(const std::string& field, const std::string& limit,
                        const std::string& needed, const std::string& work) {
  return reflect::MakeProblem(
      field, limit, absl::StrCat(work, " needs about ", needed, ", more than ", limit),
      absl::StrCat("at least ", needed, ". Raise the limit, or submit a smaller experiment"));
}

std::string SecondsText(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Seconds(absl::Ceil(time, absl::Seconds(1))), "s");
}

// Checks measured times against the limit. A guess may be wrong by several times, so it only warns.
void CheckDeviceTime(const std::string& work, Plan* plan) {
  constexpr char kField[] = "limits.device_time";
  const auto& problems = plan->resolution.problems;
  const bool told =
      std::any_of(problems.begin(), problems.end(),
                  [&](const spec::Problem& problem) { return problem.field == kField; });
  if (told) return;  // the limit itself is out of range
  const auto& wanted = plan->resolution.spec.limits().device_time();
  const absl::Duration limit = absl::Seconds(wanted.seconds()) + absl::Nanoseconds(wanted.nanos());
  const std::string text = google::protobuf::util::TimeUtil::ToString(wanted);
  const Cost& cost = plan->cost;
  if (cost.measured_time > limit) {
    plan->resolution.problems.push_back(
        OverLimit(kField, text, SecondsText(cost.measured_time), work));
  } else if (cost.device_time > limit) {
    plan->resolution.notes.push_back(absl::StrCat(
        kField, ": ", work, " may take about ", SecondsText(cost.device_time), ", more than ", text,
        "; this is a guess (too few similar runs or analyses were made here), so the experiment is "
        "accepted"));
  }
}

void CheckLimits(size_t trained, Plan* plan) {
  if (plan->analyses > lookup::kMaxOpenAnalyses) {
    plan->resolution.problems.push_back(reflect::MakeProblem(
        "analyses", "", absl::StrCat(text::Grouped(plan->analyses), " analyses in all"),
        absl::StrCat("at most ", text::Grouped(lookup::kMaxOpenAnalyses))));
  }
  const v1::Limits& limits = plan->resolution.spec.limits();
  const std::string work = WorkOf(trained, plan->analyses);
  if (limits.has_device_time()) CheckDeviceTime(work, plan);
  if (limits.has_bytes() && plan->cost.bytes > limits.bytes()) {
    const auto words = [](uint64_t bytes) { return absl::StrCat(text::Grouped(bytes), " bytes"); };
    plan->resolution.problems.push_back(
        OverLimit("limits.bytes", words(limits.bytes()), words(plan->cost.bytes), work));
  }
}

std::string RoundedUpMegabytes(uint64_t bytes) {
  return absl::StrCat((bytes + 999'999) / 1'000'000, " MB");
}

// The size stored while other experiments train is unknown: compares the estimate with the room
// that is free now.
absl::Status CheckRoom(const storage::Store& store, Plan* plan) {
  ASSIGN_OR_RETURN(const uint64_t free, store.FreeBytes());
  const uint64_t needed = plan->cost.bytes;
  if (needed == 0) return absl::OkStatus();
  const std::string what =
      absl::StrCat("the experiment needs about ", RoundedUpMegabytes(needed), ", and ",
                   store.folder(), " has ", RoundedUpMegabytes(free), " free");
  if (needed > free) {
    plan->no_room = absl::StrCat(what, ". Free disk space, or submit a smaller experiment");
  } else if (static_cast<double>(needed) > kLargeShareOfDisk * static_cast<double>(free)) {
    plan->resolution.notes.push_back(what);
  }
  return absl::OkStatus();
}

// Returns the runs that would count for the owner's quota and don't yet: new ones, and those that
// other users have queued or training.
uint64_t RunsToAdd(const Plan& plan) {
  uint64_t runs = 0;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const storage::KnownRun& known = plan.known[i];
    const bool open =
        known.state == storage::RunState::kQueued || known.state == storage::RunState::kLeased;
    if (!plan.reused[i] || (open && !known.counts_toward_quota)) ++runs;
  }
  return runs;
}

absl::Status CheckUsersQuota(const Backend& backend, const std::string& user, Plan* plan) {
  const absl::Status allowed = CheckQuota(backend, user, {RunsToAdd(*plan), plan->cost.bytes});
  if (!absl::IsResourceExhausted(allowed)) return allowed;
  plan->no_room = std::string(allowed.message());
  return absl::OkStatus();
}

// Returns the number of evaluations: before the first step, every so many steps, and at the end.
double EvaluationsOf(const RunCost& run) {
  const uint32_t every = std::max<uint32_t>(run.every, 1);
  return 1 + std::ceil(static_cast<double>(run.steps) / every);
}

// Returns a guess for a run whose shape was not measured, in microseconds.
double GuessedTime(const RunCost& run) {
  const auto& [pass, flops, passes] = run.guessed_speed;
  const double step = passes * pass + run.flops_per_step / flops;
  const double evaluation = pass * run.evaluation.passes + run.evaluation.flops / flops;
  return run.steps * step + EvaluationsOf(run) * evaluation;
}

// Resume states of a lane at once: the newest, and the one that it replaces or that of the previous
// run.
constexpr uint64_t kResumeStatesALane = 2;

// Returns when the last of `seconds` ends if each free lane takes the next.
double Makespan(const std::vector<double>& seconds, uint32_t lanes) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (uint32_t lane = 0; lane < lanes; ++lane) free_at.push(0);
  double last = 0;
  for (const double each : seconds) {
    const double end = free_at.top() + each;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

// Fills in everything except the resolution, which has no problems.
absl::Status PlanRuns(const Backend& backend, const lookup::View& view,
                      const std::string& private_to, const Devices& devices, bool fresh,
                      Plan* plan) {
  KeepPrivate(private_to, &plan->resolution);
  const std::vector<RunCost> costs = CollectRuns(plan);
  ASSIGN_OR_RETURN(std::vector<storage::KnownRun> known,
                   backend.store->LookUpRuns(plan->runs, view.viewer.user));
  plan->known = std::move(known);
  std::vector<RunCost> trained;
  size_t saved = 0;
  for (size_t i = 0; i < plan->runs.size(); ++i) {
    plan->reused.push_back(!fresh && IsReusable(plan->known[i]));
    plan->first_step.push_back(fresh ? 0 : ChooseOrigin(devices, plan->known[i], &plan->runs[i]));
    if (plan->reused.back()) continue;
    const uint32_t saved_step = fresh ? 0 : SavedStep(devices, plan->known[i], plan->runs[i]);
    saved += saved_step > 0 ? 1 : 0;
    trained.push_back(costs[i]);
    trained.back().steps -= std::max(plan->first_step.back(), saved_step);
  }
  NoteOrigins(plan);
  NoteSaved(saved, plan);
  if (!fresh) {
    NoteLost(plan);
    RETURN_IF_ERROR(NoteTrainedAgain(backend.store, devices, plan));
  }
  if (std::string note = UndecidableNote(plan->resolution); !note.empty()) {
    plan->resolution.notes.push_back(std::move(note));
  }
  ASSIGN_OR_RETURN(const Cost cost,
                   EstimateCost(trained,
                                [&backend](absl::string_view shape) {
                                  return backend.store->MeasuredStepTime(shape);
                                },
                                {devices.lanes, backend.store->last_states_bytes()}));
  plan->cost = cost;
  RETURN_IF_ERROR(AddAnalyses(view, private_to, plan));
  CheckLimits(trained.size(), plan);
  absl::Status room = CheckRoom(*backend.store, plan);
  return room.ok() ? CheckUsersQuota(backend, view.viewer.user, plan) : room;
}

}  // namespace

absl::StatusOr<Cost> EstimateCost(const std::vector<RunCost>& runs, const StepTime& step_time,
                                  const Capacity& capacity) {
  std::map<std::string, std::optional<double>> known;
  Cost cost;
  double total = 0, measured = 0;
  uint64_t largest_state = 0;
  uint64_t kept = 0;
  std::map<std::string, std::vector<double>> seconds;  // by device kind
  for (const RunCost& run : runs) {
    auto shape = known.find(run.shape);
    if (shape == known.end()) {
      ASSIGN_OR_RETURN(const std::optional<double> micros, step_time(run.shape));
      shape = known.emplace(run.shape, micros).first;
      cost.measured = cost.measured && micros.has_value();
    }
    const double micros = shape->second.has_value() ? *shape->second * run.steps : GuessedTime(run);
    // A run of several lanes takes as long as one a lane that share its work.
    seconds[run.device_kind].insert(seconds[run.device_kind].end(), run.lanes,
                                    micros / 1e6 / run.lanes);
    total += micros / 1e6;
    if (shape->second.has_value()) measured += micros / 1e6;
    cost.bytes += run.bytes;
    largest_state = std::max(largest_state, run.resume_bytes);
    if (run.grows) kept = std::min(kept + run.resume_bytes, capacity.last_states_bytes);
  }
  uint64_t states = 0;
  double last = 0;
  for (const auto& [kind, of_kind] : seconds) {
    const auto known_lanes = capacity.lanes.find(kind);
    const uint32_t lanes =
        known_lanes == capacity.lanes.end() ? 1 : std::max<uint32_t>(known_lanes->second, 1);
    states += std::min<uint64_t>(of_kind.size(), kResumeStatesALane * lanes);
    last = std::max(last, Makespan(of_kind, lanes));
  }
  cost.bytes += kept + states * largest_state;
  cost.device_time = absl::Seconds(total);
  cost.measured_time = absl::Seconds(measured);
  cost.wall_time = absl::Seconds(last);
  return cost;
}

absl::Status AddAnalysesCost(size_t count, const spec::EntryCost& entry, const FindTimes& find,
                             Cost* cost) {
  if (count == 0) return absl::OkStatus();
  cost->bytes += count * entry.array_bytes;
  for (const auto& [group, guess] : entry.times) {
    ASSIGN_OR_RETURN(const storage::AnalysisTimes made, find(group));
    const analysis::ExpectedTime expected = analysis::ExpectTime(guess, made);
    const absl::Duration time = absl::Microseconds(static_cast<double>(count) * expected.micros);
    cost->device_time += time;
    cost->wall_time += time;
    cost->measured = cost->measured && expected.measured;
    if (expected.measured) cost->measured_time += time;
  }
  return absl::OkStatus();
}

storage::NewRun ToRun(const spec::ResolvedCell& cell) {
  storage::NewRun run;
  run.fingerprint = cell.fingerprint;
  run.trajectory = cell.trajectory;
  run.growth = cell.growth;
  run.seed = cell.seed;
  run.steps = cell.run.spec().training().steps();
  run.parameters = cell.parameters;
  run.device_kind = cell.device_kind;
  run.trainer = cell.trainer;
  run.shape = cell.shape;
  run.spec = cell.run.SerializeAsString();
  run.dataset_blob = cell.dataset_sha256;
  run.initial_blob = cell.initial_sha256;
  run.numerics_version = engine::kNumericsVersion;
  run.lanes = std::max(cell.run.spec().training().threads(), 1u);
  return run;
}

std::string PrivateTo(const lookup::View& view, const v1::CreateExperimentRequest& request) {
  return request.private_() ? view.viewer.user : "";
}

absl::StatusOr<Plan> MakePlan(const Backend& backend, const lookup::View& view,
                              v1::CreateExperimentRequest* request) {
  const std::string private_to = PrivateTo(view, *request);
  const Devices devices = KnownDevices(backend.scheduler);
  Plan plan;
  spec::Surroundings surroundings;
  surroundings.cuda = devices.cuda;
  surroundings.most_lanes = devices.most_lanes;
  surroundings.memory = devices.memory;
  std::set<std::string> table_notes;
  surroundings.find_dataset = [&](absl::string_view name, bool as_text) {
    return LookUpDataset(view, private_to, name, as_text, &plan, &table_notes);
  };
  surroundings.encode_dataset = [&](const std::string& text, const std::string& tokenizer,
                                    bool documents) {
    return EncodeDataset(view, private_to, text, tokenizer, documents, &plan);
  };
  surroundings.find_model = [&](const std::string& name) {
    return FindInitialModel(view, private_to, name);
  };
  plan.resolution =
      spec::Resolve(std::move(*request->mutable_spec()),
                    {request->overrides().begin(), request->overrides().end()}, surroundings);
  plan.resolution.notes.insert(plan.resolution.notes.end(), table_notes.begin(), table_notes.end());
  spec::Problems problems;
  problems.Add(std::move(plan.resolution.problems));
  analysis::UnstoredData unstored;
  for (const EncodedText& encoded : plan.encoded) {
    if (!encoded.file.empty()) unstored[encoded.record.sha256] = encoded.file;
  }
  absl::Status status =
      analysis::CheckAskedInputs(view, private_to, plan.resolution, unstored, &problems);
  plan.resolution.problems = problems.Take();
  if (status.ok() && plan.resolution.sound) {
    status = PlanRuns(backend, view, private_to, devices, request->fresh(), &plan);
  }
  if (!status.ok()) return status;
  return plan;
}

}  // namespace ablate::submit
