#include "server/submit/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/analysis/document_facts.h"
#include "server/analysis/inputs.h"
#include "server/config/program.h"
#include "server/engine/trainer.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/resolve.h"
#include "server/lookup/names.h"
#include "server/submit/decidable.h"
#include "server/submit/earlier_runs.h"
#include "server/submit/initial_models.h"
#include "server/submit/plan_limits.h"
#include "server/submit/table_note.h"

namespace ablate::submit {
namespace {

constexpr absl::Duration kWorkerStart = absl::Seconds(10);
constexpr absl::Duration kWorkerPoll = absl::Milliseconds(100);

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
    // A program's steps aren't known before it runs: its time is that of a run.
    const uint32_t steps = plan->runs.back().open_steps ? 1 : plan->runs.back().steps;
    costs.push_back({cell.shape, steps, cell.flops_per_step, cell.bytes, cell.resume_bytes,
                     !cell.growth.empty(), cell.run.spec().evaluation().every(), cell.evaluation,
                     cell.guessed_speed, LaneKind(cell.device_kind, cell.trainer),
                     plan->runs.back().lanes});
  }
  return costs;
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

// Returns true if some worker of this kind of device has said which programs it takes, or why it
// takes none; or if there is no GPU.
bool KnowsPrograms(const Devices& devices, const std::string& kind) {
  const bool exists = kind == "cpu" || devices.lanes.count(kind) > 0 ||
                      devices.lanes.count(LaneKind(kind, spec::kProgramTrainer)) > 0;
  return !exists || devices.no_programs.count(kind) > 0 ||
         std::any_of(devices.environments.begin(), devices.environments.end(),
                     [&kind](const auto& one) {
                       const auto& [of, trainer] = one.first;
                       return of == kind && spec::IsProgramTrainer(trainer);
                     });
}

// Returns the known devices. Only a worker knows the environments of programs, so a plan with a
// program waits a while for one: after the server's start, or while a lost one is replaced.
Devices AwaitDevices(const Backend& backend, const v1::ExperimentSpec& spec) {
  const absl::Duration end = MonotonicNow() + kWorkerStart;
  const v1::ProgramSpec& program = spec.base().program();
  const std::string kind = v1::ProgramDevice::Value_Name(
      program.has_device() ? program.device() : v1::ProgramDevice::cpu);
  while (true) {
    Devices devices = KnownDevices(backend.scheduler);
    const bool wait = spec.base().has_program() && !KnowsPrograms(devices, kind);
    if (!wait || MonotonicNow() >= end) return devices;
    absl::SleepFor(kWorkerPoll);
  }
}

// Returns false if the spec asks to run its program again.
bool ReusesRuns(const v1::ExperimentSpec& spec) {
  return !spec.base().has_program() || !spec.base().program().has_reuse() ||
         spec.base().program().reuse();
}

// Fills in everything except the resolution, which has no problems.
absl::Status PlanRuns(const Backend& backend, const lookup::View& view,
                      const std::string& private_to, const Devices& devices, bool fresh,
                      Plan* plan) {
  KeepPrivate(private_to, &plan->resolution);
  const std::vector<RunCost> costs = CollectRuns(plan);
  ASSIGN_OR_RETURN(plan->known, backend.store->LookUpRuns(plan->runs, view.viewer.user));
  std::vector<RunCost> trained;
  size_t saved = 0;
  for (size_t i = 0; i < plan->runs.size(); ++i) {
    plan->reused.push_back(!fresh && IsReusable(plan->known[i]));
    plan->first_step.push_back(fresh ? 0 : ChooseOrigin(devices, plan->known[i], &plan->runs[i]));
    if (plan->reused.back()) continue;
    const uint32_t saved_step = fresh ? 0 : SavedStep(devices, plan->known[i], plan->runs[i]);
    saved += saved_step > 0 ? 1 : 0;
    trained.push_back(costs[i]);
    if (spec::IsProgramTrainer(plan->runs[i].trainer)) continue;
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
  ASSIGN_OR_RETURN(plan->cost, EstimateCost(trained,
                                            [&backend](absl::string_view shape) {
                                              return backend.store->MeasuredStepTime(shape);
                                            },
                                            {devices.lanes, backend.store->last_states_bytes()}));
  RETURN_IF_ERROR(AddAnalyses(view, private_to, plan));
  CheckLimits(trained.size(), plan);
  absl::Status room = CheckRoom(*backend.store, plan);
  return room.ok() ? CheckUsersQuota(backend, view.viewer.user, plan) : room;
}

// Returns NewRun::whole_seconds: only programs without checkpoints can't continue.
uint32_t WholeSeconds(const v1::BaseSpec& spec) {
  if (!spec.has_program() || spec.program().checkpoint()) return 0;
  const v1::ProgramLimits& limits = spec.program().limits();
  return limits.has_time() ? static_cast<uint32_t>(limits.time().seconds()) + 1
                           : storage::kUnknownSeconds;
}

}  // namespace

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
  run.data_blob = cell.data_sha256;
  run.initial_blob = cell.initial_sha256;
  // A program's numbers depend on none of ours.
  run.open_steps = spec::IsProgramTrainer(run.trainer);
  run.numerics_version = run.open_steps ? 0 : engine::kNumericsVersion;
  run.lanes = spec::LanesOf(cell.run.spec());
  run.whole_seconds = WholeSeconds(cell.run.spec());
  return run;
}

std::string PrivateTo(const lookup::View& view, const v1::CreateExperimentRequest& request) {
  return request.private_() ? view.viewer.user : "";
}

absl::StatusOr<Plan> MakePlan(const Backend& backend, const lookup::View& view,
                              v1::CreateExperimentRequest* request) {
  const std::string private_to = PrivateTo(view, *request);
  const Devices devices = AwaitDevices(backend, request->spec());
  Plan plan;
  spec::Surroundings surroundings;
  surroundings.cuda = devices.cuda;
  surroundings.most_lanes = devices.most_lanes;
  surroundings.memory = devices.memory;
  surroundings.no_programs = devices.no_programs;
  for (const auto& [of, environments] : devices.environments) {
    const auto& [kind, trainer] = of;
    if (!spec::IsProgramTrainer(trainer)) continue;
    surroundings.environments[kind][spec::EnvironmentOf(trainer)] = *environments.begin();
  }
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
  if (plan.resolution.sound && !ReusesRuns(plan.resolution.spec)) request->set_fresh(true);
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
