// CreateExperiment: turns a request into queued runs, or lists all its problems.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "proto/reflect/text.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/resolve.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/rpc/call.h"
#include "server/service/annotations.h"
#include "server/service/changes.h"
#include "server/service/convert.h"
#include "server/service/run_fields.h"
#include "server/service/services.h"
#include "server/submit/analysis_planner.h"
#include "server/submit/decidable.h"
#include "server/submit/plan.h"
#include "server/submit/quotas.h"
#include "server/submit/related.h"

namespace ablate::service {
namespace {

constexpr int kMaxChanges = 100;
constexpr size_t kMaxChangeCharacters = 200;

void CheckChanges(const v1::CreateExperimentRequest& request, spec::Problems* problems) {
  if (request.changes_size() > kMaxChanges) {
    problems->Add("changes", absl::StrCat(request.changes_size()),
                  absl::StrCat(request.changes_size(), " texts"),
                  absl::StrCat("at most ", kMaxChanges));
    return;
  }
  for (int i = 0; i < request.changes_size(); ++i) {
    const std::string& change = request.changes(i);
    if (text::IsPrintable(change, kMaxChangeCharacters)) continue;
    problems->Add(absl::StrCat("changes[", i, "]"), reflect::ShortText(change),
                  absl::StrCat(reflect::Quoted(change), " is invalid"),
                  absl::StrCat("1 to ", kMaxChangeCharacters, " printable characters"));
  }
}

// Checks the request's own fields; Resolve checks the spec.
std::vector<spec::Problem> CheckRequest(const v1::CreateExperimentRequest& request) {
  spec::Problems checked;
  CheckNewTags("tags", request.tags(), &checked);
  CheckNote(request.note(), &checked);
  CheckChanges(request, &checked);
  if (request.fresh() && (request.find_identical() || !request.extends().empty())) {
    checked.Add("fresh", "true", "every cell would be trained again",
                "fresh without find_identical and extends");
  }
  std::vector<spec::Problem> problems = checked.Take();
  const std::string& id = request.request_id();
  const bool may_be_absent = request.validate_only() && id.empty();
  if (!may_be_absent && !text::IsPrintable(id, lookup::kMaxRequestIdCharacters)) {
    problems.push_back(reflect::MakeProblem(
        "request_id", reflect::ShortText(id),
        id.empty() ? "missing" : absl::StrCat(reflect::Quoted(id), " is invalid"),
        absl::StrCat("1 to ", lookup::kMaxRequestIdCharacters,
                     " printable characters, new for each submission")));
  }
  if (!request.has_spec()) {
    problems.push_back(reflect::MakeProblem("spec", "", "missing", "an experiment"));
  }
  if (request.overrides().size() > spec::kMaxOverrides) {
    problems.push_back(spec::TooManyOverrides(request.overrides().size()));
  }
  return problems;
}

// Returns a hash that is equal for requests that mean the same submission. Clears the fields that
// don't matter.
std::string RequestHash(v1::CreateExperimentRequest* request) {
  request->clear_request_id();
  request->clear_validate_only();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request->SerializeToCodedStream(&coded);
  }
  return Sha256Hex(bytes);
}

int PriorityOf(const v1::Limits& limits) {
  return limits.has_priority() ? limits.priority() - v1::Priority::interactive : 1;
}

// Identifies a submission.
struct Submission {
  std::string id;    // request_id
  std::string hash;  // of everything else
  std::string owner;
  std::string private_to;
  std::optional<storage::ExperimentRecord> extends = {};
};

// Returns the submission's changes of its file: the client's texts, then the overrides. Of texts
// with one word before the '=', the last stays.
std::vector<std::string> ChangesOf(const v1::CreateExperimentRequest& request) {
  std::vector<std::string> all(request.changes().begin(), request.changes().end());
  const std::map<std::string, google::protobuf::Value> overrides(request.overrides().begin(),
                                                                 request.overrides().end());
  for (const auto& [path, value] : overrides) {
    all.push_back(reflect::ShortText(absl::StrCat(path, "=", reflect::ShortText(value))));
  }
  std::vector<std::string> changes;
  std::set<std::string> words;
  std::reverse(all.begin(), all.end());
  for (std::string& change : all) {
    if (words.insert(change.substr(0, change.find('='))).second) {
      changes.push_back(std::move(change));
    }
  }
  std::reverse(changes.begin(), changes.end());
  return changes;
}

// Returns the tags of the request and of the experiment that it extends.
std::set<std::string> TagsOf(const Submission& submission,
                             const v1::CreateExperimentRequest& request) {
  std::set<std::string> tags(request.tags().begin(), request.tags().end());
  if (const auto& extended = submission.extends) {
    tags.insert(extended->tags.begin(), extended->tags.end());
  }
  return tags;
}

storage::NewExperiment ToRecord(const Submission& submission,
                                const v1::CreateExperimentRequest& request, submit::Plan&& plan) {
  storage::NewExperiment record;
  const std::set<std::string> tags = TagsOf(submission, request);
  record.tags.assign(tags.begin(), tags.end());
  record.note = request.note();
  if (const auto& extended = submission.extends) {
    record.extends = extended->id;
    if (record.note.empty()) record.note = extended->note;
  }
  record.changes = ChangesOf(request);
  for (const spec::AskedAnalysis& asked : spec::AskedAnalyses(plan.resolution.spec)) {
    record.labels.push_back(asked.label);
  }
  record.name = plan.resolution.spec.name();
  record.owner = submission.owner;
  record.private_to = submission.private_to;
  record.request_id = submission.id;
  record.request_hash = submission.hash;
  record.spec = plan.resolution.spec.SerializeAsString();
  record.priority = PriorityOf(plan.resolution.spec.limits());
  record.fresh = request.fresh();
  record.analyses = !record.labels.empty();
  for (const spec::ResolvedCell& cell : plan.resolution.cells) {
    record.cells.push_back({cell.name, cell.labels, cell.seed, cell.fingerprint});
  }
  record.fields = FieldsOf(plan.resolution.cells);
  record.uploads.assign(plan.uploads.begin(), plan.uploads.end());
  if (request.find_identical() && !submission.extends.has_value()) {
    record.repeats = [spec = plan.resolution.spec](const storage::ExperimentRecord& experiment) {
      return submit::IsRepeatedBy(experiment, spec);
    };
  }
  record.runs = std::move(plan.runs);
  return record;
}

// Returns true if a row of so many bytes fits into the answer; otherwise notes that it has `added`
// of `all`.
bool Fits(size_t bytes, int added, size_t all, absl::string_view what, lookup::Room* room,
          v1::CreateExperimentResponse* response) {
  if (room->Take(bytes)) return true;
  response->add_notes(absl::StrCat("the answer has the first ", added, " of ", all, " ", what));
  return false;
}

template <class Row>
void AddRows(const std::vector<Row>& rows, absl::string_view what, lookup::Room* room,
             google::protobuf::RepeatedPtrField<Row>* field,
             v1::CreateExperimentResponse* response) {
  for (const Row& row : rows) {
    const size_t bytes = row.ByteSizeLong() + 8;
    if (!Fits(bytes, field->size(), rows.size(), what, room, response)) return;
    *field->Add() = row;
  }
}

// Returns false once a cell doesn't fit.
bool AddCell(v1::Cell&& cell, size_t all, absl::string_view what, lookup::Room* room,
             v1::CreateExperimentResponse* response) {
  const size_t bytes = cell.ByteSizeLong() + 8;
  if (!Fits(bytes, response->cells_size(), all, what, room, response)) return false;
  *response->add_cells() = std::move(cell);
  return true;
}

void AddNotes(const std::vector<std::string>& notes, lookup::Room* room,
              v1::CreateExperimentResponse* response) {
  for (const std::string& note : notes) {
    const size_t bytes = note.size() + 4;
    if (!Fits(bytes, response->notes_size(), notes.size(), "notes", room, response)) return;
    response->add_notes(note);
  }
}

std::vector<v1::TrainerUse> TrainersOf(const submit::Plan& plan) {
  using Use = std::pair<std::string, std::string>;  // trainer and reason
  // By run: if some cells ask for a trainer and others leave it open, the reason is the latter's.
  std::map<size_t, Use> use_of_run;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const spec::ResolvedCell& cell = plan.resolution.cells[i];
    Use& use = use_of_run[plan.run_of_cell[i]];
    use = std::max(use, {cell.trainer, cell.why_not_native});
  }
  std::map<Use, uint32_t> runs;
  for (const auto& [run, use] : use_of_run) ++runs[use];
  std::vector<v1::TrainerUse> uses;
  for (const auto& [key, trained] : runs) {
    v1::TrainerUse& use = uses.emplace_back();
    use.set_trainer(key.first);
    use.set_why_not_native(key.second);
    use.set_runs(trained);
  }
  return uses;
}

void DescribePlan(const submit::Plan& plan, lookup::Room* room,
                  v1::CreateExperimentResponse* response) {
  AddNotes(plan.resolution.notes, room, response);
  AddRows(TrainersOf(plan), "trainers' uses", room, response->mutable_trainers(), response);
  AddRows(plan.resolution.parameters, "settings' parameters", room, response->mutable_parameters(),
          response);
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const storage::KnownRun& known = plan.known[plan.run_of_cell[i]];
    if (!known.run.empty() || known.same_trajectory.empty()) continue;
    const std::string& cell = plan.resolution.cells[i].name;
    if (room->Take(cell.size() + 4)) response->add_differs_only_in_evaluation(cell);
  }
  response->set_analyses(static_cast<uint32_t>(plan.analyses));
  v1::Estimate* estimate = response->mutable_estimate();
  *estimate->mutable_device_time() = ToDuration(plan.cost.device_time);
  *estimate->mutable_wall_time() = ToDuration(plan.cost.wall_time);
  estimate->set_bytes(plan.cost.bytes);
  estimate->set_measured(plan.cost.measured);
}

// Adds the cells of the plan.
void PreviewCells(const submit::Plan& plan, lookup::Room* room,
                  v1::CreateExperimentResponse* response) {
  storage::RunCounts counts;
  bool full = false;
  uint32_t reused = 0;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const size_t run = plan.run_of_cell[i];
    const spec::ResolvedCell& resolved = plan.resolution.cells[i];
    const bool is_reused = plan.reused[run];
    const storage::RunState state = is_reused ? plan.known[run].state : storage::RunState::kQueued;
    CountCell(state, &counts);
    reused += is_reused ? 1 : 0;
    if (full) continue;
    v1::Cell cell;
    cell.set_name(resolved.name);
    SetLabels(resolved.labels, cell.mutable_labels());
    cell.set_seed(resolved.seed);
    if (is_reused) cell.set_run(lookup::RunName(plan.known[run].run));
    SetOrigin(plan.runs[run].origin, plan.first_step[run], &cell);
    cell.set_state(ToProto(state));
    cell.set_reused(is_reused);
    full = !AddCell(std::move(cell), plan.run_of_cell.size(), "cells", room, response);
  }
  *response->mutable_experiment()->mutable_counts() = ToProto(counts);
  response->set_reused(reused);
}

// Returns the answer to validate_only.
v1::CreateExperimentResponse Preview(const Submission& submission, submit::Plan&& plan) {
  v1::CreateExperimentResponse response;
  response.mutable_experiment()->set_owner(submission.owner);
  response.mutable_experiment()->set_private_(!submission.private_to.empty());
  *response.mutable_experiment()->mutable_spec() = std::move(plan.resolution.spec);
  lookup::Room room(lookup::kPageBytes);
  room.Take(response.ByteSizeLong());
  std::vector<v1::Problem> problems;
  for (const spec::Problem& problem : plan.resolution.problems) {
    problems.push_back(ToProto(problem));
  }
  if (!plan.no_room.empty()) problems.emplace_back().set_message(plan.no_room);
  AddRows(problems, "problems", &room, response.mutable_problems(), &response);
  if (plan.runs.empty()) return response;
  DescribePlan(plan, &room, &response);
  PreviewCells(plan, &room, &response);
  return response;
}

// Adds the cells of an experiment while they fit.
absl::Status AddStoredCells(storage::Store* store, const std::string& id, size_t count,
                            lookup::Room* room, v1::CreateExperimentResponse* response) {
  return lookup::VisitCells(store, id, [&](const std::vector<storage::CellRecord>& page) {
    for (const storage::CellRecord& cell : page) {
      if (!AddCell(ToProto(cell), count, "cells; ListRuns has all", room, response)) return false;
    }
    return true;
  });
}

// Adds the parameter counts of each setting's runs, as DescribePlan does; seeds of one are
// adjacent.
absl::Status AddStoredParameters(storage::Store* store, const std::string& id, lookup::Room* room,
                                 v1::CreateExperimentResponse* response) {
  std::vector<v1::SettingParameters> settings;
  std::vector<std::pair<std::string, std::string>> labels;
  const auto add = [&](const std::vector<storage::CellRecord>& page) -> absl::StatusOr<bool> {
    for (const storage::CellRecord& cell : page) {
      if (!settings.empty() && cell.labels == labels) continue;
      labels = cell.labels;
      ASSIGN_OR_RETURN(const auto run, store->GetRun(cell.run));
      SetLabels(labels, settings.emplace_back().mutable_labels());
      settings.back().set_parameters(run.parameters);
    }
    return true;
  };
  RETURN_IF_ERROR(lookup::VisitCells(store, id, add));
  AddRows(settings, "settings' parameters", room, response->mutable_parameters(), response);
  return absl::OkStatus();
}

// Adds the stored part of an answer about an experiment with so many cells and reused ones.
absl::Status AddStored(const Backend& backend, const std::string& id, size_t cells, uint32_t reused,
                       lookup::Room* room, v1::CreateExperimentResponse* response) {
  response->set_reused(reused);
  ASSIGN_OR_RETURN(const storage::ExperimentRecord record, backend.store->GetExperiment(id));
  *response->mutable_experiment() = ToProto(record, backend.store->stalled());
  return AddStoredCells(backend.store, id, cells, room, response);
}

// Returns the stored part of the first answer to a request_id, without its plan, which would differ
// now. Nothing if there was none.
absl::StatusOr<std::optional<v1::CreateExperimentResponse>> AnswerAgain(
    const Backend& backend, const Submission& submission) {
  const auto known = backend.store->FindRequest(submission.owner, submission.id, submission.hash);
  if (absl::IsAlreadyExists(known.status()))
    return lookup::WithReason(known.status(), "REQUEST_ID_USED");
  if (!known.ok()) return known.status();
  if (!known->has_value()) return std::optional<v1::CreateExperimentResponse>();
  const storage::CreatedExperiment& created = **known;
  ASSIGN_OR_RETURN(const auto record, backend.store->GetExperiment(created.id));
  v1::CreateExperimentResponse response;
  lookup::Room room(lookup::kPageBytes);
  room.Take(record.spec.size());
  absl::Status added = AddStoredParameters(backend.store, created.id, &room, &response);
  if (added.ok()) {
    added = AddStored(backend, created.id, created.cells.size(), created.reused, &room, &response);
  }
  if (!added.ok()) return added;
  return response;
}

// Returns a preview that names an identical experiment, with its tags and note.
absl::StatusOr<v1::CreateExperimentResponse> AnnotatedAs(const Backend& backend,
                                                         const std::string& identical,
                                                         v1::CreateExperimentResponse preview) {
  ASSIGN_OR_RETURN(const storage::ExperimentRecord record, backend.store->GetExperiment(identical));
  preview.set_identical_to(lookup::ExperimentName(identical));
  preview.mutable_experiment()->mutable_tags()->Add(record.tags.begin(), record.tags.end());
  preview.mutable_experiment()->set_note(record.note);
  return preview;
}

// Returns the answer about an experiment that is there already.
absl::StatusOr<v1::CreateExperimentResponse> AnswerWith(const Backend& backend,
                                                        const std::string& identical,
                                                        const submit::Plan& plan) {
  v1::CreateExperimentResponse response;
  lookup::Room room(lookup::kPageBytes);
  room.Take(plan.resolution.spec.ByteSizeLong());
  DescribePlan(plan, &room, &response);
  RETURN_IF_ERROR(AddStored(backend, identical, plan.run_of_cell.size(),
                            static_cast<uint32_t>(plan.run_of_cell.size()), &room, &response));
  response.set_identical_to(response.experiment().name());
  return response;
}

absl::StatusOr<v1::CreateExperimentResponse> Store(const Backend& backend,
                                                   const Submission& submission,
                                                   const v1::CreateExperimentRequest& request,
                                                   submit::Plan&& plan) {
  v1::CreateExperimentResponse response;
  lookup::Room room(lookup::kPageBytes);
  room.Take(plan.resolution.spec.ByteSizeLong());
  DescribePlan(plan, &room, &response);
  storage::NewExperiment record = ToRecord(submission, request, std::move(plan));
  record.max_open_runs = submit::QuotaOf(backend, submission.owner).queued_runs;
  absl::StatusOr<storage::CreatedExperiment> created = backend.store->CreateExperiment(record);
  if (absl::IsAlreadyExists(created.status())) {
    return lookup::WithReason(created.status(), "REQUEST_ID_USED");
  }
  if (!created.ok()) return created.status();
  if (created->identical) {
    const size_t cells = record.cells.size();
    RETURN_IF_ERROR(
        AddStored(backend, created->id, cells, static_cast<uint32_t>(cells), &room, &response));
    response.set_identical_to(response.experiment().name());
    return response;
  }
  backend.scheduler->Post([](schedule::Scheduler& scheduler) { scheduler.Dispatch(); });
  // Also if this one asks for nothing: other experiments' runs may have been queued again.
  backend.planner->Expect();
  RETURN_IF_ERROR(
      AddStored(backend, created->id, created->cells.size(), created->reused, &room, &response));
  return response;
}

absl::StatusOr<v1::CreateExperimentResponse> CreateFor(const Backend& backend,
                                                       const grpc::ServerContextBase& context,
                                                       v1::CreateExperimentRequest* request) {
  if (request->validate_only()) {
    ASSIGN_OR_RETURN(const auto view, backend.FindView(context));
    return CreateExperiment(backend, view, request);
  }
  absl::StatusOr<v1::CreateExperimentResponse> response;
  const absl::Status made =
      MakeChange(backend, context, "Experiments.CreateExperiment",
                 [&](const storage::Caller& caller, std::string* resource) {
                   response = CreateExperiment(backend, backend.ViewOf(caller), request);
                   if (response.ok()) *resource = response->experiment().name();
                   return response.status();
                 });
  return made.ok() ? std::move(response) : made;
}

absl::Status ReadCreateAnswer(const Backend& backend, const grpc::ServerContextBase& context,
                              const grpc::ByteBuffer& bytes, grpc::ByteBuffer* answer) {
  v1::CreateExperimentRequest request;
  grpc::ByteBuffer read = bytes;  // shares the bytes
  if (!grpc::SerializationTraits<v1::CreateExperimentRequest>::Deserialize(&read, &request).ok()) {
    return lookup::MalformedRequest();
  }
  ASSIGN_OR_RETURN(auto response, CreateFor(backend, context, &request));
  bool owned = false;
  const grpc::Status written =
      grpc::SerializationTraits<v1::CreateExperimentResponse>::Serialize(response, answer, &owned);
  return written.ok() ? absl::OkStatus() : absl::InternalError("the answer can't be written");
}

absl::Status CheckBytes(size_t bytes) {
  if (bytes <= lookup::kMaxSpecBytes) return absl::OkStatus();
  return lookup::InvalidField("spec",
                              absl::StrCat("the request has ", text::Grouped(bytes), " bytes"),
                              absl::StrCat("at most ", text::Grouped(lookup::kMaxSpecBytes)));
}

// Adds the extended experiment to the submission.
absl::Status FindExtended(const lookup::View& view, const v1::CreateExperimentRequest& request,
                          const submit::Plan& plan, Submission* submission,
                          std::vector<spec::Problem>* problems) {
  ASSIGN_OR_RETURN(submission->extends, submit::CheckExtension(view, submission->private_to,
                                                               request.extends(), plan, problems));
  const size_t tags = TagsOf(*submission, request).size();
  if (tags > storage::kMaxTags) {
    problems->push_back(
        reflect::MakeProblem("tags", absl::StrCat(tags),
                             absl::StrCat(tags, " tags with those of ", submission->extends->id),
                             absl::StrCat("at most ", storage::kMaxTags)));
  }
  return absl::OkStatus();
}

// Plans the request. Its problems are those of the request, the extension and the spec.
absl::StatusOr<submit::Plan> PlanSubmission(const Backend& backend, const lookup::View& view,
                                            std::vector<spec::Problem> problems,
                                            v1::CreateExperimentRequest* request,
                                            Submission* submission) {
  submit::Plan plan;
  if (request->has_spec() && request->overrides().size() <= spec::kMaxOverrides) {
    ASSIGN_OR_RETURN(plan, submit::MakePlan(backend, view, request));
  }
  if (!request->extends().empty()) {
    RETURN_IF_ERROR(FindExtended(view, *request, plan, submission, &problems));
  }
  std::vector<spec::Problem>& all = plan.resolution.problems;
  all.insert(all.begin(), problems.begin(), problems.end());
  return plan;
}

// Returns the ID of an identical experiment if the request asks for it; empty if there is none. One
// that isn't the extended experiment doesn't take its place.
absl::StatusOr<std::string> FindRepeated(const lookup::View& view, const Submission& submission,
                                         const v1::CreateExperimentRequest& request,
                                         const submit::Plan& plan) {
  if (!request.find_identical() || !plan.resolution.problems.empty()) return "";
  ASSIGN_OR_RETURN(std::string found, submit::FindIdentical(view, submission.private_to, plan));
  const bool is_other = submission.extends.has_value() && found != submission.extends->id;
  return is_other ? "" : std::move(found);
}

// Answers validate_only.
absl::StatusOr<v1::CreateExperimentResponse> AnswerDryRun(const Backend& backend,
                                                          const lookup::View& view,
                                                          const Submission& submission,
                                                          const std::string& identical,
                                                          submit::Plan&& plan) {
  if (plan.resolution.problems.empty()) {
    ASSIGN_OR_RETURN(std::string note, submit::DetectableNote(view, plan.resolution));
    if (!note.empty()) plan.resolution.notes.push_back(std::move(note));
  }
  v1::CreateExperimentResponse preview = Preview(submission, std::move(plan));
  if (identical.empty()) return preview;
  return AnnotatedAs(backend, identical, std::move(preview));
}

}  // namespace

absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    const Backend& backend, const lookup::View& view, v1::CreateExperimentRequest* request) {
  std::vector<spec::Problem> problems = CheckRequest(*request);
  Submission submission{request->request_id(), "", view.viewer.user,
                        submit::PrivateTo(view, *request)};
  const bool validate_only = request->validate_only();
  if (!validate_only) submission.hash = RequestHash(request);
  if (!validate_only && problems.empty()) {
    // Before planning: a request that was accepted once might be refused by later changes.
    ASSIGN_OR_RETURN(auto again, AnswerAgain(backend, submission));
    if (again.has_value()) return *std::move(again);
  }
  ASSIGN_OR_RETURN(submit::Plan plan,
                   PlanSubmission(backend, view, std::move(problems), request, &submission));
  ASSIGN_OR_RETURN(const std::string identical, FindRepeated(view, submission, *request, plan));
  if (validate_only) return AnswerDryRun(backend, view, submission, identical, std::move(plan));
  if (!plan.resolution.problems.empty()) return lookup::InvalidFields(plan.resolution.problems);
  if (!identical.empty()) return AnswerWith(backend, identical, plan);
  if (!plan.no_room.empty()) return absl::ResourceExhaustedError(plan.no_room);
  for (const submit::EncodedText& encoded : plan.encoded) {
    RETURN_IF_ERROR(submit::StoreEncoded(backend, encoded));
  }
  return Store(backend, submission, *request, std::move(plan));
}

grpc::ServerUnaryReactor* AnswerCreate(Backend* backend, grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) {
  const size_t bytes = request->Length();
  const auto share = backend->specs.Take(bytes, backend->submissions->UserOf(*context));
  absl::Status refused = CheckBytes(bytes);
  if (refused.ok()) refused = share.status();
  if (!refused.ok()) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(lookup::ToGrpc(refused));
    return reactor;
  }
  return rpc::Answer(
      backend->submissions, context, [backend, context, request, response, bytes, share = *share] {
        const absl::Status status = ReadCreateAnswer(*backend, *context, *request, response);
        if (bytes >= lookup::kLargeRequestBytes || response->Length() >= lookup::kLargeRequestBytes)
          rpc::GiveMemoryBack();
        return status;
      });
}

}  // namespace ablate::service
