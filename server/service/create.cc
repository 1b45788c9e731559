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
#include "server/service/create_answer.h"
#include "server/service/run_fields.h"
#include "server/service/services.h"
#include "server/submit/analysis_planner.h"
#include "server/submit/decidable.h"
#include "server/submit/experiment_text.h"
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
  const bool has_text = !request.text().empty();
  if (!request.has_spec() && !has_text) {
    problems.push_back(
        reflect::MakeProblem("spec", "", "missing", "an experiment, here or as text"));
  }
  if (request.has_spec() && has_text) {
    problems.push_back(reflect::MakeProblem("text", "", "given with spec", "one of them"));
  }
  if (request.text().size() > lookup::kMaxTextBytes) {
    problems.push_back(reflect::MakeProblem(
        "text", "", absl::StrCat(text::Grouped(request.text().size()), " bytes"),
        absl::StrCat("at most ", text::Grouped(lookup::kMaxTextBytes),
                     ", or the experiment as spec")));
  }
  if (!has_text && (!request.files().empty() || request.has_seeds() || !request.name().empty())) {
    problems.push_back(reflect::MakeProblem("text", "", "missing",
                                            "the text that files, seeds and name belong to"));
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
  return FromPriority(limits.has_priority() ? limits.priority() : v1::Priority::normal);
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
  record.max_failed = plan.resolution.spec.limits().failures();
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
  v1::CreateExperimentResponse preview =
      Preview(submission.owner, !submission.private_to.empty(), std::move(plan));
  if (identical.empty()) return preview;
  return AnnotatedAs(backend, identical, std::move(preview));
}

// Answers a request whose text can't be planned.
absl::StatusOr<v1::CreateExperimentResponse> AnswerText(const submit::TakenText& text,
                                                        std::vector<spec::Problem> problems,
                                                        bool validate_only) {
  if (!validate_only) {
    for (spec::Problem& problem : submit::ProblemsOf(text)) problems.push_back(std::move(problem));
    return lookup::InvalidFields(problems);
  }
  v1::CreateExperimentResponse response;
  for (const spec::Problem& problem : problems) *response.add_problems() = ToProto(problem);
  response.mutable_problems()->Add(text.problems.begin(), text.problems.end());
  response.mutable_files()->Add(text.files.begin(), text.files.end());
  return response;
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
  submit::TakenText text;
  const bool can_be_read = request->text().size() <= lookup::kMaxTextBytes;
  const bool is_text = !request->text().empty() && !request->has_spec();
  if (is_text && can_be_read) text = submit::TakeText(request);
  // Before files are asked for. No override makes a program of a model.
  RETURN_IF_ERROR(submit::CheckMayRunPrograms(backend, view.viewer, request->spec()));
  if (is_text && (!can_be_read || !text.complete())) {
    return AnswerText(text, std::move(problems), validate_only);
  }
  ASSIGN_OR_RETURN(submit::Plan plan,
                   PlanSubmission(backend, view, std::move(problems), request, &submission));
  ASSIGN_OR_RETURN(const std::string identical, FindRepeated(view, submission, *request, plan));
  if (validate_only) {
    ASSIGN_OR_RETURN(auto answer,
                     AnswerDryRun(backend, view, submission, identical, std::move(plan)));
    submit::Place(text, *request, answer.mutable_problems());
    return answer;
  }
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
