#include "client/submit/submission.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/terminal_text.h"
#include "client/submit/axis_options.h"
#include "client/submit/dataset_files.h"
#include "client/submit/program_files.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/text.h"
#include "proto/yaml/seeds.h"

namespace ablate::client {
namespace {

// Returns true if `field` is `path` or is below it.
bool IsWithin(absl::string_view field, absl::string_view path) {
  if (!absl::ConsumePrefix(&field, path)) return false;
  return field.empty() || field[0] == '.' || field[0] == '[';
}

// The path; of a symbolic link also the file that it leads to.
std::string WithTarget(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : absl::StrCat(path, " -> ", target.string());
}

// An option, and the field that it gives a value.
struct Origin {
  std::string option;  // empty: no option
  std::string field;
};

// The option that gave `field` its value, if one did.
Origin OriginOf(absl::string_view field, const Submission& submission) {
  if (submission.seeds_given && IsWithin(field, "seeds")) return {"--seeds", "seeds"};
  if (submission.name_given && field == "name") return {"--name", "name"};
  constexpr char kStepsField[] = "base.training.steps";
  if (submission.steps_given && field == kStepsField) return {"--steps", kStepsField};
  if (IsWithin(field, "tags")) return {"--tag", std::string(field)};
  if (field == "note") return {"--note", "note"};
  for (const auto& [index, option] : submission.axes) {
    std::string axis = absl::StrCat("axes[", index, "]");
    if (IsWithin(field, axis)) return {option, std::move(axis)};
  }
  for (const auto& [path, value] : submission.overrides) {
    for (std::string given : {absl::StrCat("base.", path), absl::StrCat("overrides.", path),
                              absl::StrCat("overrides[\"", path, "\"]")}) {
      if (IsWithin(field, given)) return {absl::StrCat("--set ", path), std::move(given)};
    }
  }
  return {};
}

Audience AudienceOf(const SubmitOptions& options) {
  return options.is_private ? Audience::kOurselves : Audience::kEverybodyUnlessPrivate;
}

// Returns a function that says what is uploaded.
BeforeUpload NoteUpload(const Context& context, const std::string& what) {
  return [&context, what](uint64_t bytes, bool is_private) {
    context.console.Note(absl::StrCat(
        "uploading ", what, " (", Bytes(bytes), ") as a ",
        is_private ? "private data set"
                   : "data set that only you see until an experiment uses it, and everybody from "
                     "then on",
        "; it is deleted after an hour if none does"));
  };
}

// Returns "2 files that git doesn't track are left out: a.py, b.py; `git add` includes them".
std::string LeftOutText(std::vector<std::string> files) {
  constexpr size_t kShown = 5;
  const std::string count = Count(files.size(), "file");
  const bool more = files.size() > kShown;
  if (more) files.resize(kShown);
  return absl::StrCat(count, " that git doesn't track ", count == "1 file" ? "is" : "are",
                      " left out: ", Printable(absl::StrJoin(files, ", ")), more ? ", …" : "",
                      "; `git add` includes them");
}

// Uploads a program's files, unless the server has them. Returns the name of their data set.
absl::StatusOr<std::string> UploadFiles(Connection* connection, const Context& context,
                                        const SubmitOptions& options, const Submission& submission,
                                        const NamedPath& named) {
  const ExperimentFile& file = submission.file;
  std::vector<std::string> left_out;
  ASSIGN_OR_RETURN(std::string packed, PackProgramFiles(file.folder, named.path, options.file,
                                                        options.data, &left_out));
  if (!left_out.empty()) context.console.Note(LeftOutText(left_out));
  const std::string name = absl::StrCat(file.spec.name(), ".files");
  ASSIGN_OR_RETURN(const Upload upload,
                   UploadBytes(connection, context, name, std::move(packed), AudienceOf(options),
                               Keep::kIfUsed, NoteUpload(context, "the program's files")));
  return upload.dataset.name();
}

// Splits a map's key that is a dotted path into its parts, too.
yaml::FieldPath Parts(const yaml::FieldPath& path) {
  return absl::StrSplit(absl::StrJoin(path, "."), '.', absl::SkipEmpty());
}

bool IsIndex(const std::string& part) {
  return std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
}

// Returns true if the path ends in an item of a list of messages: those that can't be read keep
// their places, and other items move up.
bool KeepsItsPlace(const yaml::FieldPath& path) {
  const google::protobuf::Descriptor* type = v1::ExperimentSpec::descriptor();
  for (const std::string& part : path) {
    if (IsIndex(part)) continue;
    const auto* field = type == nullptr ? nullptr : type->FindFieldByName(part);
    type = field == nullptr ? nullptr : field->message_type();
  }
  return type != nullptr && type != google::protobuf::Value::descriptor();
}

// Returns the unread fields in parts; lists whose items move up as a whole.
std::vector<yaml::FieldPath> Unread(const ExperimentFile& file) {
  std::vector<yaml::FieldPath> unread;
  for (const yaml::FieldPath& path : file.unread) {
    yaml::FieldPath parts = Parts(path);
    while (!parts.empty() && IsIndex(parts.back()) && !KeepsItsPlace(parts)) parts.pop_back();
    if (!parts.empty()) unread.push_back(std::move(parts));
  }
  return unread;
}

yaml::FieldPath First(const yaml::FieldPath& path, size_t count) {
  return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Returns true if a problem of `field` may follow from `unread` being unread. A misspelt field may
// be meant for one that the file does not have.
bool FollowsFrom(const yaml::FieldPath& field, const yaml::FieldPath& unread,
                 const yaml::SourceMap& written) {
  if (field.empty()) return false;
  const size_t last = unread.size() - 1, common = std::min(field.size(), last);
  if (First(field, common) != First(unread, common)) return false;
  if (field.size() <= last || field[last] == unread[last]) return true;
  return !IsIndex(unread[last]) && !reflect::Nearest(unread[last], {field[last]}).empty() &&
         !written.Has(First(field, last + 1));
}

// Returns the fields of base, below it, that may have another value than the file means because
// `unread` is unread: itself or, if it is misspelt, all of the message that it stands in.
std::vector<std::string> Marked(const yaml::FieldPath& unread) {
  if (unread.empty() || unread[0] != "base") return {};
  const google::protobuf::Descriptor* type = v1::BaseSpec::descriptor();
  std::vector<std::string> known;
  for (size_t i = 1; i < unread.size() && type != nullptr; ++i) {
    const auto* field = type->FindFieldByName(unread[i]);
    if (field == nullptr) break;
    known.push_back(unread[i]);
    type = field->is_repeated() ? nullptr : field->message_type();
  }
  if (!known.empty() || type == nullptr) return {absl::StrJoin(known, ".")};
  for (int i = 0; i < type->field_count(); ++i) known.push_back(type->field(i)->name());
  return known;
}

// Returns the field as the file has it, whose analyses may be more than those that are left.
std::string FieldInFile(absl::string_view field, const ShortenedSpec& shortened) {
  constexpr absl::string_view kAnalyses = "analyses[";
  size_t index = 0;
  const size_t end = field.find(']');
  if (!absl::StartsWith(field, kAnalyses) || end == absl::string_view::npos ||
      !absl::SimpleAtoi(field.substr(kAnalyses.size(), end - kAnalyses.size()), &index) ||
      index >= shortened.analyses.size()) {
    return std::string(field);
  }
  return absl::StrCat(kAnalyses, shortened.analyses[index], field.substr(end));
}

bool IsKnown(const yaml::Diagnostic& problem, const std::vector<yaml::Diagnostic>& known) {
  return std::any_of(known.begin(), known.end(), [&problem](const yaml::Diagnostic& one) {
    return (one.position == problem.position || !one.where.empty()) && one.where == problem.where &&
           one.message == problem.message;
  });
}

// Returns the spec of a stored experiment in place of a file.
ExperimentFile StoredFile(const v1::Experiment& stored) {
  ExperimentFile file;
  file.name = Id(stored.name());
  file.spec = stored.spec();
  file.readable = true;
  return file;
}

// Returns what differs from the original file, without --set, which the server adds.
std::vector<std::string> ChangesOf(const SubmitOptions& options, const v1::Experiment* stored) {
  constexpr size_t kMaxChanges = 100;  // of the server
  std::vector<std::string> changes;
  if (options.file.empty()) changes.assign(stored->changes().begin(), stored->changes().end());
  if (!options.seeds.empty()) changes.push_back(absl::StrCat("seeds=", options.seeds));
  if (options.steps) changes.push_back(absl::StrCat("steps=", *options.steps));
  changes.insert(changes.end(), options.axes.begin(), options.axes.end());
  for (std::string& change : changes) change = reflect::ShortText(change);
  if (changes.size() > kMaxChanges) changes.erase(changes.begin(), changes.end() - kMaxChanges);
  return changes;
}

}  // namespace

absl::StatusOr<Submission> ReadSubmission(const SubmitOptions& options, std::istream& in,
                                          const v1::Experiment* stored) {
  Submission submission;
  absl::StatusOr<v1::Seeds> seeds = v1::Seeds();
  if (!options.seeds.empty()) seeds = yaml::ParseSeeds(options.seeds);
  if (!seeds.ok()) {
    seeds = absl::InvalidArgumentError(absl::StrCat("--seeds: ", seeds.status().message()));
  }
  absl::StatusOr<Overrides> overrides = ParseOverrides(options.set);
  const absl::StatusOr<std::vector<AxisOption>> axes = ParseAxes(options.axes);
  std::vector<std::string> wrong;
  for (const absl::Status& status : {overrides.status(), axes.status(), seeds.status()}) {
    if (!status.ok()) wrong.emplace_back(status.message());
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "; "));
  if (options.steps && overrides->count("training.steps") > 0) {
    return absl::InvalidArgumentError(
        "--steps: training.steps is set by --set, too; remove one of them");
  }
  submission.overrides = *std::move(overrides);
  submission.file =
      options.file.empty() ? StoredFile(*stored) : LoadExperimentFile(options.file, in);
  submission.changes = ChangesOf(options, stored);
  if (!options.extend.empty()) {
    submission.extends = stored->name();
    submission.file.spec.set_name(stored->spec().name());
  }
  CheckOverrides(submission.overrides, &submission.file.problems);
  if (submission.file.readable) submission.axes = ApplyAxes(*axes, &submission.file);
  submission.steps_given = options.steps.has_value();
  if (options.steps && submission.file.readable) {
    absl::StatusOr<ShortenedSpec> shortened = Shorten(*options.steps, &submission.file.spec);
    if (shortened.ok()) {
      submission.shortened = *std::move(shortened);
    } else {
      submission.file.problems.push_back(
          {{}, std::string(shortened.status().message()), "--steps"});
    }
  }
  if (!options.name.empty()) submission.file.spec.set_name(options.name);
  submission.seeds_given = !options.seeds.empty();
  submission.name_given = !options.name.empty();
  if (submission.seeds_given) *submission.file.spec.mutable_seeds() = *std::move(seeds);
  yaml::SortByPosition(&submission.file.problems);
  return submission;
}

absl::Status UploadDatasets(Connection* connection, const Context& context,
                            const SubmitOptions& options, Submission* submission) {
  return ReplaceDatasetPaths(
      &submission->file, &submission->overrides, options.data,
      [&](const NamedPath& named) -> absl::StatusOr<std::string> {
        if (named.is_files) return UploadFiles(connection, context, options, *submission, named);
        ASSIGN_OR_RETURN(const Upload upload,
                         UploadFile(connection, context, named.path, AudienceOf(options),
                                    Keep::kIfUsed, NoteUpload(context, WithTarget(named.path))));
        return upload.dataset.name();
      });
}

absl::Status FindDatasets(Connection* connection, const Context& context,
                          const SubmitOptions& options, Submission* submission) {
  return ReplaceDatasetPaths(&submission->file, &submission->overrides, options.data,
                             [&](const NamedPath& named) -> absl::StatusOr<std::string> {
                               // Without its files nothing about a program can be found out.
                               if (named.is_files) {
                                 return UploadFiles(connection, context, options, *submission,
                                                    named);
                               }
                               return FindFile(connection, named.path, AudienceOf(options));
                             });
}

v1::CreateExperimentRequest MakeRequest(const Submission& submission,
                                        const SubmitOptions& options) {
  v1::CreateExperimentRequest request;
  if (!options.dry_run) request.set_request_id(process::RandomId());
  *request.mutable_spec() = submission.file.spec;
  for (const auto& [path, value] : submission.overrides) {
    (*request.mutable_overrides())[path] = value;
  }
  request.mutable_changes()->Add(submission.changes.begin(), submission.changes.end());
  request.mutable_tags()->Add(options.tags.begin(), options.tags.end());
  request.set_note(options.note);
  request.set_extends(submission.extends);
  request.set_find_identical(!options.fresh);
  request.set_fresh(options.fresh);
  request.set_private_(options.is_private);
  request.set_validate_only(options.dry_run);
  return request;
}

void MarkUnread(const ExperimentFile& file, v1::CreateExperimentRequest* request) {
  constexpr size_t kMaxOverrides = 100;  // of the server
  for (const yaml::FieldPath& path : Unread(file)) {
    for (const std::string& marked : Marked(path)) {
      if (request->overrides().size() >= kMaxOverrides) return;
      // Nothing is changed if the command line gives it a value.
      request->mutable_overrides()->insert({marked, google::protobuf::Value()});
    }
  }
}

std::vector<yaml::Diagnostic> Locate(
    const google::protobuf::RepeatedPtrField<v1::Problem>& problems, const Submission& submission) {
  std::vector<yaml::Diagnostic> located = submission.file.problems;
  const std::vector<yaml::FieldPath> unread = Unread(submission.file);
  for (const v1::Problem& problem : problems) {
    absl::string_view field = problem.field();
    absl::ConsumePrefix(&field, "spec.");
    const yaml::FieldPath parts = Parts(yaml::ParseFieldPath(field));
    const bool follows =
        std::any_of(unread.begin(), unread.end(), [&](const yaml::FieldPath& path) {
          return FollowsFrom(parts, path, submission.file.positions);
        });
    const Origin origin = OriginOf(field, submission);
    yaml::Diagnostic diagnostic = {
        submission.file.positions.Find(FieldInFile(field, submission.shortened)),
        origin.option.empty() ? problem.message()
                              : yaml::WithoutField(problem.message(), origin.field),
        origin.option};
    const bool marked =  // by MarkUnread
        origin.option.empty() && field != "overrides" && IsWithin(field, "overrides");
    if (follows || marked || IsKnown(diagnostic, submission.file.problems)) continue;
    located.push_back(std::move(diagnostic));
  }
  yaml::SortByPosition(&located);
  return located;
}

}  // namespace ablate::client
