// `ablate edit EXP…`: changes the name, tags, note or archived state of experiments.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

struct EditOptions {
  std::vector<std::string> names;
  std::string rename;
  std::vector<std::string> tags, untags;
  std::string note;
  bool no_note = false;
  std::string priority;
  bool archive = false;
  bool restore = false;
  bool json = false;
};

// Returns the changes, without the experiment's name.
absl::StatusOr<v1::UpdateExperimentRequest> ReadEdit(const EditOptions& options) {
  if (options.archive && options.restore) {
    return absl::InvalidArgumentError("--archive and --restore exclude each other");
  }
  if (options.no_note && !options.note.empty()) {
    return absl::InvalidArgumentError("--note and --no-note exclude each other");
  }
  if (!options.rename.empty() && options.names.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rename takes one experiment; ", options.names.size(), " are given"));
  }
  RETURN_IF_ERROR(CheckNewTags(options.tags));
  v1::UpdateExperimentRequest request;
  request.set_new_name(options.rename);
  request.mutable_add_tags()->Add(options.tags.begin(), options.tags.end());
  request.mutable_remove_tags()->Add(options.untags.begin(), options.untags.end());
  if (!options.note.empty() || options.no_note) request.set_note(options.note);
  if (options.archive || options.restore) request.set_archived(options.archive);
  if (!options.priority.empty()) {
    v1::Priority::Value priority = v1::Priority::unspecified;
    if (!v1::Priority::Value_Parse(options.priority, &priority) ||
        priority == v1::Priority::unspecified) {
      return absl::InvalidArgumentError(
          absl::StrCat("--priority: ", reflect::Quoted(options.priority),
                       "; expected interactive, normal or background"));
    }
    request.set_priority(priority);
  }
  if (request.ByteSizeLong() > 0) return request;
  return absl::InvalidArgumentError(
      "nothing is to be changed; give --rename, --tag, --untag, --note, --no-note, --priority, "
      "--archive or --restore");
}

// The request's fields, and the options that set them.
constexpr std::pair<absl::string_view, absl::string_view> kOptionOfField[] = {
    {"new_name", "--rename"},
    {"add_tags", "--tag"},
    {"remove_tags", "--untag"},
    {"note", "--note"}};

// Returns "FIELD[INDEX]: PROBLEM", which may follow a number of problems, with the field's option.
std::string ByOption(absl::string_view problem) {
  const size_t colon = std::min(problem.find(": "), problem.size());
  const absl::string_view field = problem.substr(0, colon), rest = problem.substr(colon);
  if (absl::EndsWith(field, " problems")) {
    return absl::StrCat(field, ": ", ByOption(absl::StripPrefix(rest, ": ")));
  }
  for (const auto& [name, option] : kOptionOfField) {
    if (field.substr(0, field.find('[')) == name) return absl::StrCat(option, rest);
  }
  return std::string(problem);
}

// Returns the server's error with options in place of the request's fields.
absl::Status ByOptions(const absl::Status& refusal) {
  if (!absl::IsInvalidArgument(refusal)) return refusal;
  return absl::InvalidArgumentError(absl::StrJoin(
      absl::StrSplit(refusal.message(), "; "), "; ",
      [](std::string* text, absl::string_view part) { text->append(ByOption(part)); }));
}

// NOT_FOUND if the experiment lacks one of the tags that are to be removed.
absl::Status CheckTags(Connection* connection, const std::string& name,
                       const std::vector<std::string>& untags) {
  if (untags.empty()) return absl::OkStatus();
  v1::GetExperimentRequest request;
  request.set_name(name);
  ASSIGN_OR_RETURN(const v1::Experiment experiment, connection->Call(kGetExperiment, request));
  const std::vector<std::string> tags(experiment.tags().begin(), experiment.tags().end());
  for (const std::string& tag : untags) {
    if (std::find(tags.begin(), tags.end(), tag) != tags.end()) continue;
    return absl::NotFoundError(absl::StrCat(
        "--untag: ", Id(name), " has no tag ", reflect::Quoted(tag), reflect::DidYouMean(tag, tags),
        "; ", tags.empty() ? "it has none" : absl::StrCat("expected ", reflect::AnyOf(tags))));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Edit(const EditOptions& options, const v1::UpdateExperimentRequest& changes,
                         const Context& context, Connection* connection) {
  int code = kSuccess;
  std::vector<std::string> names;
  for (const std::string& text : options.names) {
    const auto name = ResolveExperimentName(connection, text, Shortened::kAllowed);
    const absl::Status found =
        name.ok() ? CheckTags(connection, *name, options.untags) : name.status();
    if (found.ok()) {
      names.push_back(*name);
    } else {
      code = Fail(context, found);
    }
  }
  if (code != kSuccess) return code;  // all or none, where that can be known
  v1::UpdateExperimentRequest request = changes;
  for (const std::string& name : names) {
    request.set_name(name);
    const absl::StatusOr<v1::Experiment> edited = connection->Call(kUpdateExperiment, request);
    if (!edited.ok()) {
      code = std::max(code, Fail(context, ByOptions(edited.status())));
    } else if (options.json) {
      PrintJson(context, *edited);
    } else {
      context.console.Info(absl::StrCat("changed ", Id(name)));
    }
  }
  return code;
}

}  // namespace

Action DefineEdit(Command* command) {
  auto options = std::make_shared<EditOptions>();
  command->Arguments(&options->names, "EXP", "Experiments");
  command->Option(&options->rename, "--rename", "NAME",
                  "Change the name. The ID stays and finds the experiment as before");
  command->Options(&options->tags, "--tag", "TAG", "Add a tag");
  command->Options(&options->untags, "--untag", "TAG", "Remove a tag");
  command->Option(&options->note, "--note", "TEXT", "Replace the note");
  command->Flag(&options->no_note, "--no-note", "Remove the note");
  command->Option(&options->priority, "--priority", "PRIORITY",
                  "Change the priority of its queued runs: interactive, normal or background");
  command->Flag(&options->archive, "--archive",
                "Leave the experiment out of `ablate ls` once it has ended, and of `ablate runs` "
                "over all; nothing is removed");
  command->Flag(&options->restore, "--restore", "List an archived experiment again");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Examples:\n  ablate edit names-norm --tag paper --note 'figure 2'\n"
      "  ablate edit names-norm-7f3k --archive\n  ablate ls --tag paper");
  return WithServer(*command, options, ReadEdit, Edit);
}

}  // namespace ablate::client
