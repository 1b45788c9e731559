#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/analysis/inputs.h"
#include "server/analysis/subjects.h"
#include "server/config/analysis_options.h"
#include "server/experiment/analysis.h"
#include "server/experiment/analysis_time.h"
#include "server/experiment/fingerprint.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/rpc/identity.h"
#include "server/service/changes.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"
#include "server/submit/analysis_labels.h"
#include "server/submit/plan.h"
#include "server/submit/quotas.h"

namespace ablate::service {
namespace {

constexpr int kMaxSubjects = 64;

// A request, resolved, and its problems.
struct Asked {
  v1::Analysis analysis;
  std::vector<storage::AnalysisSubject> subjects;
  std::vector<analysis::AnalyzedModel> models;  // the subjects'
  std::set<std::string> experiments;            // IDs that subjects name
  std::string private_to;                       // the runs', or the asking experiment's
  engine::AnalysisCost cost;
  spec::AnalysisTime time;  // guess
  spec::Problems problems;
};

// Checks a subject without looking it up.
void CheckSubject(const v1::AnalysisSubject& subject, const std::string& field,
                  spec::Problems* problems) {
  const std::string either = "either run, or experiment and cell";
  if (subject.run().empty() == subject.experiment().empty()) {
    problems->Add(absl::StrCat(field, ".run"), subject.run(),
                  subject.run().empty() ? "neither run nor experiment is given"
                                        : "run and experiment are both given",
                  either);
  } else if (!subject.run().empty() && !subject.cell().empty()) {
    problems->Add(absl::StrCat(field, ".cell"), subject.cell(), "run and cell are both given",
                  either);
  }
  if (subject.step() < -1) {
    problems->Add(absl::StrCat(field, ".step"), absl::StrCat(subject.step()),
                  absl::StrCat(subject.step(), " is out of range"),
                  "0 or more, or -1 for the last checkpoint");
  }
}

// Returns the run that a subject names.
absl::StatusOr<std::string> FindRunOf(const lookup::View& view, const v1::AnalysisSubject& subject,
                                      const std::string& field,
                                      std::set<std::string>* experiments) {
  if (!subject.run().empty()) {
    return lookup::FindRun(view, subject.run(), absl::StrCat(field, ".run"));
  }
  ASSIGN_OR_RETURN(
      const auto experiment,
      lookup::FindExperiment(view, subject.experiment(), absl::StrCat(field, ".experiment")));
  experiments->insert(experiment);
  return lookup::FindCellRun(view.store, experiment, subject.cell(), absl::StrCat(field, ".cell"));
}

// Returns the steps of a run that a subject names: one, or all if none is given and `all` is set.
absl::StatusOr<std::vector<uint32_t>> FindSteps(storage::Store* store, const std::string& run,
                                                const v1::AnalysisSubject& subject, bool all) {
  std::vector<uint32_t> steps;
  if (all && !subject.has_step()) {
    ASSIGN_OR_RETURN(const auto checkpoints, store->ListArtifacts(run));
    for (const storage::ArtifactRecord& checkpoint : checkpoints) steps.push_back(checkpoint.step);
    return steps;
  }
  std::optional<uint32_t> step;
  if (subject.has_step() && subject.step() >= 0) step = static_cast<uint32_t>(subject.step());
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(store, run, step));
  steps.push_back(checkpoint.step);
  return steps;
}

// Adds problems of subjects, in order of step, that must be checkpoints of one run, each once.
void CheckOneRun(const std::string& kind, const std::set<std::string>& runs,
                 const std::vector<storage::AnalysisSubject>& subjects, spec::Problems* problems) {
  if (runs.size() > 1) {
    problems->Add("subjects", "", absl::StrCat("they are checkpoints of ", runs.size(), " runs"),
                  absl::StrCat("checkpoints of one run for ", kind));
    return;
  }
  const auto twin = std::adjacent_find(
      subjects.begin(), subjects.end(),
      [](const auto& subject, const auto& next) { return subject.step == next.step; });
  if (twin == subjects.end()) return;
  problems->Add("subjects", "", absl::StrCat("step ", twin->step, " is repeated"),
                "each checkpoint once");
}

// An analysis is as private as its runs.
absl::Status AddPrivacy(storage::Store* store, const std::string& run, Asked* asked) {
  ASSIGN_OR_RETURN(const auto record, store->GetRun(run));
  if (record.private_to.empty() || record.private_to == asked->private_to) {
    return absl::OkStatus();
  }
  if (!asked->private_to.empty()) {
    asked->problems.Add("subjects", "", "private to two users",
                        "public runs, and private ones of one user");
  }
  asked->private_to = record.private_to;
  return absl::OkStatus();
}

// Sets subjects and models, in order of step for kinds that read checkpoints of one run.
absl::Status FindSubjects(const lookup::View& view, const v1::CreateAnalysisRequest& request,
                          Asked* asked) {
  const bool one_run = spec::TakesStepsOfOneRun(request.analysis());
  std::set<std::string> runs;
  for (int i = 0; i < request.subjects_size(); ++i) {
    const v1::AnalysisSubject& subject = request.subjects(i);
    ASSIGN_OR_RETURN(const auto run, FindRunOf(view, subject, absl::StrCat("subjects[", i, "]"),
                                               &asked->experiments));
    RETURN_IF_ERROR(AddPrivacy(view.store, run, asked));
    ASSIGN_OR_RETURN(const auto steps, FindSteps(view.store, run, subject, one_run));
    ASSIGN_OR_RETURN(const auto model, analysis::ModelOfRun(view.store, run));
    runs.insert(run);
    asked->models.insert(asked->models.end(), steps.size(), model);
    for (const uint32_t step : steps) asked->subjects.push_back({run, step});
  }
  if (one_run) {
    std::sort(asked->subjects.begin(), asked->subjects.end(),
              [](const auto& a, const auto& b) { return a.step < b.step; });
    CheckOneRun(spec::KindName(request.analysis()), runs, asked->subjects, &asked->problems);
  }
  for (const storage::AnalysisSubject& subject : asked->subjects) {
    v1::AnalysisSubject& message = *asked->analysis.add_subjects();
    message.set_run(lookup::RunName(subject.run));
    message.set_step(static_cast<int32_t>(subject.step));
  }
  return absl::OkStatus();
}

std::vector<engine::RunConfig> ConfigsOf(const std::vector<analysis::AnalyzedModel>& models) {
  std::vector<engine::RunConfig> configs;
  for (const analysis::AnalyzedModel& model : models) configs.push_back(model.config);
  return configs;
}

// Resolves a request. `private_to` is that of the experiment that asks for it, or empty.
absl::StatusOr<Asked> Resolve(const lookup::View& view, const v1::CreateAnalysisRequest& request,
                              const std::string& private_to) {
  Asked asked;
  asked.private_to = private_to;
  *asked.analysis.mutable_analysis() = request.analysis();
  *asked.analysis.mutable_inputs() = request.inputs();
  asked.analysis.set_seed(request.seed());
  const bool known =
      spec::ResolveAnalysis(asked.analysis.mutable_analysis(), "analysis", &asked.problems);
  if (known) {
    spec::ResolveInputs(asked.analysis.analysis(), asked.analysis.mutable_inputs(),
                        &asked.problems);
  }
  if (request.subjects_size() > kMaxSubjects) {
    asked.problems.Add("subjects", "", absl::StrCat(request.subjects_size(), " given"),
                       absl::StrCat("at most ", kMaxSubjects));
    return asked;
  }
  spec::CheckLabel(request.label(), "label", &asked.problems);
  for (int i = 0; i < request.subjects_size(); ++i) {
    CheckSubject(request.subjects(i), absl::StrCat("subjects[", i, "]"), &asked.problems);
  }
  ASSIGN_OR_RETURN(const auto found,
                   analysis::FindInputs(view, request.analysis(), asked.analysis.mutable_inputs(),
                                        &asked.problems));
  if (!asked.problems.empty()) return asked;
  ASSIGN_OR_RETURN(const auto options, spec::ToEngineOptions(asked.analysis.analysis()));
  RETURN_IF_ERROR(FindSubjects(view, request, &asked));
  analysis::CheckPrivacy(found.private_to, asked.private_to, asked.analysis.inputs(),
                         &asked.problems);
  if (!asked.problems.empty()) return asked;
  asked.cost = spec::CheckSubjects(options, asked.analysis.inputs(), found.text_bytes,
                                   ConfigsOf(asked.models), "analysis", &asked.problems);
  if (!asked.problems.empty()) return asked;
  const engine::RunConfig first =
      asked.models.empty() ? engine::RunConfig() : asked.models.front().config;
  const uint64_t tokens =
      spec::MostTokens(asked.analysis.inputs(), found.text_bytes, first.model.context);
  asked.time = spec::GuessAnalysisTime(engine::KindOf(options), asked.cost, tokens, first);
  analysis::CheckInputs(view.store, options, asked.analysis.inputs(), asked.models,
                        &asked.problems);
  return asked;
}

// The label of an analysis's numbers as metrics, and whose metrics they become.
struct ChosenLabel {
  std::string label;
  submit::MetricLabels of;
};

// Returns the record to store.
storage::NewAnalysis ToRecord(const lookup::View& view, const Asked& asked,
                              const ChosenLabel& chosen, const std::string& asked_by) {
  storage::NewAnalysis analysis;
  analysis.owner = view.viewer.user;
  analysis.private_to = asked.private_to;
  // Distinguishes private analyses of no run; others have private runs' fingerprints already.
  analysis.id = spec::PrivateTo(asked.private_to, spec::AnalysisFingerprint(asked.analysis));
  analysis.signature = spec::AnalysisSignature(asked.analysis);
  analysis.request = asked.analysis.SerializeAsString();
  analysis.subjects = asked.subjects;
  analysis.time_group = spec::PrivateTo(asked.private_to, asked.time.group);
  analysis.guessed_time = asked.time.micros;
  for (const std::string& experiment : chosen.of.experiments) {
    analysis.labels.push_back({experiment, chosen.label});
  }
  analysis.asked_by = asked_by;
  if (!asked_by.empty()) analysis.asked_as = chosen.label;
  return analysis;
}

// Returns the request's label; without one, the first of KIND, KIND-2 … that no other analysis of
// the subjects' experiments has. ALREADY_EXISTS if that of the request is taken, or too many are.
absl::StatusOr<ChosenLabel> ChooseLabel(const lookup::View& view, const Asked& asked,
                                        const v1::CreateAnalysisRequest& request,
                                        const std::string& asked_by) {
  constexpr int kMostLabels = 100;
  const bool given = !request.label().empty();
  const std::string kind = spec::KindName(request.analysis());
  for (int n = 1;; ++n) {
    ChosenLabel chosen;
    chosen.label = given ? request.label() : n == 1 ? kind : absl::StrCat(kind, "-", n);
    auto of = submit::FindLabels(view, {&asked.analysis, &asked.experiments, chosen.label, given,
                                        asked.private_to, asked_by});
    absl::Status taken = of.status();
    if (of.ok()) {
      chosen.of = *std::move(of);
      taken = view.store->CheckLabels(ToRecord(view, asked, chosen, asked_by));
    }
    if (taken.ok()) return chosen;
    if (given || !absl::IsAlreadyExists(taken) || n == kMostLabels) return taken;
  }
}

// Sets the cost of an analysis; its time is found as in the estimates of experiments.
absl::Status AddCost(const lookup::View& view, const Asked& asked, v1::AnalysisCost* to) {
  to->set_forwards(asked.cost.forwards);
  to->set_state_bytes(asked.cost.state_bytes);
  to->set_array_bytes(asked.cost.array_bytes);
  const spec::GroupTime time = {asked.time.micros, asked.time.micros};
  submit::Cost cost;
  absl::Status added = submit::AddAnalysesCost(
      1, {{{asked.time.group, time}}, 0},
      [&](absl::string_view group) {
        return view.store->MeasuredAnalysisTimes(spec::PrivateTo(asked.private_to, group));
      },
      &cost);
  *to->mutable_device_time() = ToDuration(cost.device_time);
  to->set_measured(cost.measured);
  return added;
}

// Returns true if the label is refused, which a dry run reports as a problem.
bool IsOfLabel(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsPermissionDenied(status);
}

v1::Problem LabelProblem(const v1::CreateAnalysisRequest& request, const absl::Status& refusal) {
  return ToProto(
      spec::Problem{"label", request.label(), "another one", std::string(refusal.message())});
}

absl::Status GetAnalysis(const Backend& backend, const lookup::View& view,
                         const v1::GetAnalysisRequest& request, v1::Analysis* response) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindAnalysis(view, request.name(), "name"));
  ASSIGN_OR_RETURN(const auto record, backend.store->GetAnalysis(id));
  *response = ToProto(record, backend.analyses->Progress(record));
  return absl::OkStatus();
}

// Reads a page of rows for `parent`.
absl::StatusOr<std::vector<storage::AnalysisRecord>> ReadRows(const lookup::View& view,
                                                              const std::string& parent,
                                                              const std::string& after,
                                                              uint32_t limit) {
  storage::Store* const store = view.store;
  if (parent.empty()) return store->ListAnalyses(view.viewer, after, limit);
  if (absl::StartsWith(parent, "runs/")) {
    ASSIGN_OR_RETURN(const auto run, lookup::FindRun(view, parent, "parent"));
    return store->RunAnalyses(view.viewer, run, after, limit);
  }
  ASSIGN_OR_RETURN(const auto experiment, lookup::FindExperiment(view, parent, "parent"));
  return store->ExperimentAnalyses(view.viewer, experiment, after, limit);
}

absl::Status ListAnalyses(const Backend& backend, const lookup::View& view,
                          const v1::ListAnalysesRequest& request,
                          v1::ListAnalysesResponse* response) {
  const std::string list = absl::StrCat("analyses of ", request.parent());
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, list, lookup::kDefaultPage));
  ASSIGN_OR_RETURN(auto records, ReadRows(view, request.parent(), page.position, page.size + 1));
  bool more = records.size() > page.size;
  if (more) records.pop_back();
  lookup::Room room(lookup::kPageBytes);
  std::string last;
  for (const storage::AnalysisRecord& record : records) {
    v1::Analysis analysis = ToProto(record, backend.analyses->Progress(record));
    if (!room.Take(analysis.ByteSizeLong())) {
      more = true;
      break;
    }
    last = record.id;
    *response->add_analyses() = std::move(analysis);
  }
  if (more && !last.empty()) response->set_next_page_token(lookup::PageToken(list, last));
  return absl::OkStatus();
}

// Finds an analysis that the caller may change: the caller must be its owner or an admin. Nobody
// but an admin may change it while an experiment of another user asks for it: any experiment, or an
// ACTIVE one only.
enum class Askers { kAny, kActive };
absl::StatusOr<storage::AnalysisRecord> FindToChange(const Backend& backend,
                                                     const storage::Caller& caller,
                                                     const std::string& name, Askers askers,
                                                     std::string* resource) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindWholeAnalysis(backend.ViewOf(caller), name, "name"));
  *resource = lookup::AnalysisName(id);
  auto record = backend.store->GetAnalysis(id);
  if (!record.ok()) return record.status();
  RETURN_IF_ERROR(rpc::CheckMayChange(caller, record->owner, *resource));
  ASSIGN_OR_RETURN(const auto asking, backend.store->AnalysisAskers(id));
  for (const storage::AnalysisAsker& asker : asking) {
    if (askers == Askers::kActive && !asker.active) continue;
    const std::string wanted =
        absl::StrCat(lookup::ExperimentName(asker.experiment), ", which asks for ", *resource, ",");
    RETURN_IF_ERROR(rpc::CheckMayChange(caller, asker.owner, wanted));
  }
  return record;
}

absl::Status CancelAnalysis(Backend& backend, const storage::Caller& caller,
                            const v1::CancelAnalysisRequest& request, std::string* resource,
                            v1::Analysis* response) {
  ASSIGN_OR_RETURN(const auto asked,
                   FindToChange(backend, caller, request.name(), Askers::kActive, resource));
  ASSIGN_OR_RETURN(const auto record, backend.store->CancelAnalysis(asked.id));
  backend.analyses->Cancel(asked.id);
  *response = ToProto(record, record.progress);
  return absl::OkStatus();
}

absl::Status DeleteAnalysis(Backend& backend, const storage::Caller& caller,
                            const v1::DeleteAnalysisRequest& request, std::string* resource,
                            google::protobuf::Empty*) {
  ASSIGN_OR_RETURN(const auto asked,
                   FindToChange(backend, caller, request.name(), Askers::kAny, resource));
  const absl::Status deleted = backend.store->DeleteAnalysis(asked.id);
  if (deleted.ok()) backend.analyses->Cancel(asked.id);
  return deleted;
}

absl::StatusOr<rpc::BlobReader> OpenArrays(const Backend& backend,
                                           const grpc::ServerContextBase& context,
                                           const v1::ReadAnalysisArraysRequest& request) {
  ASSIGN_OR_RETURN(const auto view, backend.FindView(context));
  ASSIGN_OR_RETURN(const auto id, lookup::FindAnalysis(view, request.name(), "name"));
  ASSIGN_OR_RETURN(const auto record, backend.store->GetAnalysis(id));
  if (record.state != storage::AnalysisState::kDone) {
    return lookup::WithReason(
        absl::FailedPreconditionError(absl::StrCat("analysis ", id, " is not DONE")),
        "ANALYSIS_NOT_DONE");
  }
  if (record.artifact.empty()) {
    return absl::NotFoundError(absl::StrCat("analysis ", id, " has no arrays"));
  }
  return rpc::BlobReader::Open(backend.store, record.artifact, request.offset());
}

// Returns the user to whom the experiment that asks for an analysis is private; empty if none asks.
absl::StatusOr<std::string> PrivacyOf(storage::Store* store, const std::string& experiment) {
  if (experiment.empty()) return std::string();
  ASSIGN_OR_RETURN(const auto record, store->GetExperiment(experiment));
  return record.private_to;
}

grpc::ServerUnaryReactor* AnswerCreateAnalysis(Backend* backend,
                                               grpc::CallbackServerContext* context,
                                               const v1::CreateAnalysisRequest* request,
                                               v1::CreateAnalysisResponse* response) {
  return rpc::Answer(backend->pool, context, [backend, context, request, response] {
    if (request->validate_only()) {
      ASSIGN_OR_RETURN(const auto view, backend->FindView(context));
      return CreateAnalysis(*backend, *request, view, "", response);
    }
    return MakeChange(*backend, *context, "Analyses.CreateAnalysis",
                      [&](const storage::Caller& caller, std::string* resource) {
                        lookup::View view = backend->ViewOf(caller);
                        view.call = context;
                        const absl::Status made =
                            CreateAnalysis(*backend, *request, view, "", response);
                        *resource = response->analysis().name();
                        return made;
                      });
  });
}

}  // namespace

absl::Status CreateAnalysis(const Backend& backend, const v1::CreateAnalysisRequest& request,
                            const lookup::View& view, const std::string& asked_by,
                            v1::CreateAnalysisResponse* response) {
  ASSIGN_OR_RETURN(const auto private_to, PrivacyOf(view.store, asked_by));
  ASSIGN_OR_RETURN(auto asked, Resolve(view, request, private_to));
  const std::vector<spec::Problem> problems = asked.problems.Take();
  if (!problems.empty() && !request.validate_only()) return lookup::InvalidFields(problems);
  for (const spec::Problem& problem : problems) *response->add_problems() = ToProto(problem);
  if (!problems.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(AddCost(view, asked, response->mutable_cost()));
  const auto chosen = ChooseLabel(view, asked, request, asked_by);
  if (request.validate_only() && IsOfLabel(chosen.status())) {
    *response->add_problems() = LabelProblem(request, chosen.status());
    return absl::OkStatus();
  }
  if (!chosen.ok()) return chosen.status();
  if (!chosen->of.experiments.empty()) response->set_label(chosen->label);
  for (const std::string& id : chosen->of.unlabelled) {
    response->add_unlabelled(lookup::ExperimentName(id));
  }
  const storage::NewAnalysis analysis = ToRecord(view, asked, *chosen, asked_by);
  const std::string& id = analysis.id;
  RETURN_IF_ERROR(submit::CheckQuota(backend, view.viewer.user, {0, asked.cost.array_bytes}));
  if (request.validate_only()) {
    const auto stored = backend.store->GetAnalysis(id);
    ASSIGN_OR_RETURN(const auto there, backend.store->IsAnalysisThere(id));
    response->set_reused(there);
    *response->mutable_analysis() =
        stored.ok() ? ToProto(*stored, backend.analyses->Progress(*stored)) : asked.analysis;
    return absl::IsNotFound(stored.status()) ? absl::OkStatus() : stored.status();
  }
  ASSIGN_OR_RETURN(
      const auto created,
      backend.store->CreateAnalysis(
          analysis, asked_by.empty() ? lookup::kMaxOpenAnalyses : lookup::kMaxPlannedAnalyses));
  const storage::AnalysisState state = created.record.state;
  if (state == storage::AnalysisState::kQueued || state == storage::AnalysisState::kRunning) {
    backend.analyses->Submit(id);
  }
  response->set_reused(created.reused);
  *response->mutable_analysis() =
      ToProto(created.record, backend.analyses->Progress(created.record));
  return absl::OkStatus();
}

std::unique_ptr<grpc::Service> MakeAnalysesService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Analyses", backend);
  methods->Begin(AnswerCreateAnalysis);
  methods->Answer(GetAnalysis);
  methods->Answer(ListAnalyses);
  methods->Change(CancelAnalysis);
  methods->Change(DeleteAnalysis);
  methods->Stream(StartWatchAnalysis);
  methods->Download<v1::AnalysisArraysChunk>(OpenArrays);
  return methods;
}

}  // namespace ablate::service
