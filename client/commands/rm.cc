// `ablate rm NAME…`: remove experiments and the runs that nothing else has, or analyses.
#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "client/analysis_kinds.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

struct RmOptions {
  std::vector<std::string> names;
  bool yes = false;
  bool dry_run = false;
  bool json = false;
};

bool IsAnalysis(const std::string& name) { return absl::StartsWith(name, "analyses/"); }

absl::StatusOr<v1::DeleteExperimentResponse> DeleteExperiment(Connection* connection,
                                                              const std::string& name,
                                                              bool validate_only) {
  v1::DeleteExperimentRequest request;
  request.set_name(name);
  request.set_validate_only(validate_only);
  return connection->Call(kDeleteExperiment, request);
}

// Returns IDs separated by commas, such as "names-norm-7f3k, names-lr-1a2b".
std::string Ids(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* text, const std::string& name) {
    absl::StrAppend(text, Id(name));
  });
}

// Returns a line with the sizes, and a line for each reason why something stays.
std::string DeletionText(const std::string& name, const v1::DeleteExperimentResponse& deletion) {
  std::string text = absl::StrCat(Id(name), ": ", Count(deletion.runs(), "run"));
  if (deletion.analyses() == 1) absl::StrAppend(&text, ", 1 analysis");
  if (deletion.analyses() > 1) absl::StrAppend(&text, ", ", deletion.analyses(), " analyses");
  absl::StrAppend(&text, ", ", Duration(ToDuration(deletion.device_time())), ", ",
                  Bytes(deletion.bytes()));
  if (deletion.shared_runs() > 0) {
    absl::StrAppend(&text, "\n  ", Count(deletion.shared_runs(), "run"),
                    deletion.shared_runs() == 1 ? " stays" : " stay", " for other experiments");
    if (!deletion.shared_with().empty()) {
      absl::StrAppend(&text, ": ", Ids(deletion.shared_with()));
    }
  }
  if (!deletion.checkpoint_of().empty()) {
    absl::StrAppend(&text, "\n  checkpoints stay that other experiments began with: ",
                    Ids(deletion.checkpoint_of()));
  }
  return text;
}

std::string AnalysisText(const v1::Analysis& analysis) {
  return absl::StrCat(analysis.name(), ": ", AnalysisKindName(analysis.analysis()), ", ",
                      Duration(ToDuration(analysis.device_time())), ", ",
                      Bytes(analysis.artifact_bytes()));
}

// Prints each line as a message.
void PrintLines(const Context& context, const std::string& text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) context.console.Info(line);
}

// The sizes of a removal, as text and as the server's message.
struct Preview {
  std::string text;
  std::unique_ptr<google::protobuf::Message> message;
};

// Returns what the removal of `name` takes, which is one of `names`.
absl::StatusOr<Preview> PreviewOf(Connection* connection, const std::string& name,
                                  const std::vector<std::string>& names) {
  if (IsAnalysis(name)) {
    v1::GetAnalysisRequest request;
    request.set_name(name);
    ASSIGN_OR_RETURN(const v1::Analysis analysis, connection->Call(kGetAnalysis, request));
    return Preview{AnalysisText(analysis), std::make_unique<v1::Analysis>(analysis)};
  }
  ASSIGN_OR_RETURN(const auto deletion, DeleteExperiment(connection, name, /*validate_only=*/true));
  std::string text = DeletionText(name, deletion);
  const std::string extension = ExtensionOf(connection, name);
  const auto is_extension = [&](const std::string& one) { return Id(one) == extension; };
  if (!extension.empty() && std::none_of(names.begin(), names.end(), is_extension)) {
    absl::StrAppend(&text, "\n  ", extension, " extends it, and stays with all of its cells");
  }
  return Preview{std::move(text), std::make_unique<v1::DeleteExperimentResponse>(deletion)};
}

// Asks whoever sits at the terminal.
bool IsConfirmed(const Context& context) {
  *context.console.err << "remove? [y/N] " << std::flush;
  std::string answer;
  std::getline(*context.console.in, answer);
  answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  return answer == "y" || answer == "yes";
}

absl::Status Remove(Connection* connection, const Context& context, const RmOptions& options,
                    const std::string& name) {
  v1::DeleteExperimentResponse deletion;
  std::string removed = Id(name);
  if (IsAnalysis(name)) {
    v1::DeleteAnalysisRequest request;
    request.set_name(name);
    RETURN_IF_ERROR(connection->Call(kDeleteAnalysis, request).status());
    if (options.json) PrintJson(context, google::protobuf::Empty());
  } else {
    ASSIGN_OR_RETURN(const auto response,
                     DeleteExperiment(connection, name, /*validate_only=*/false));
    removed = DeletionText(name, response);
    if (options.json) PrintJson(context, response);
  }
  if (!options.json) PrintLines(context, absl::StrCat("removed ", removed));
  return absl::OkStatus();
}

// Returns the names, each once. They are looked up first, so that the preview has the IDs, and that
// without a question nothing is removed if one of them is wrong.
std::vector<std::string> LookUp(Connection* connection, const Context& context,
                                const RmOptions& options, int* code) {
  const bool shown = options.dry_run || !options.yes;
  std::vector<std::string> names;
  for (const std::string& text : options.names) {
    absl::StatusOr<std::string> name = text;
    if (!IsAnalysis(text)) {
      name = ResolveExperimentName(connection, text,
                                   shown ? Shortened::kAllowed : Shortened::kRefused);
    }
    if (name.ok()) {
      const bool known = std::find(names.begin(), names.end(), *name) != names.end();
      if (!known) names.push_back(*std::move(name));
    } else {
      *code = Fail(context, name.status());
    }
  }
  return names;
}

// Prints what would be removed; returns the names that can be.
std::vector<std::string> ShowPreviews(Connection* connection, const Context& context,
                                      const RmOptions& options,
                                      const std::vector<std::string>& names, int* code) {
  std::vector<std::string> removable;
  for (const std::string& name : names) {
    const absl::StatusOr<Preview> preview = PreviewOf(connection, name, names);
    if (!preview.ok()) {
      *code = std::max(*code, Fail(context, preview.status()));
      continue;
    }
    removable.push_back(name);
    if (!options.dry_run) {
      PrintLines(context, preview->text);
    } else if (options.json) {
      PrintJson(context, *preview->message);
    } else {
      *context.console.out << preview->text << "\n";
    }
  }
  if (removable.size() > 1) {
    context.console.Note("what only these need together goes, too, with the last of them");
  }
  return removable;
}

absl::StatusOr<int> Rm(const RmOptions& options, const Context& context, Connection* connection) {
  if (!context.console.in_is_terminal && !options.yes && !options.dry_run) {
    context.console.Error(
        "ablate rm: standard input is not a terminal, so rm can't ask; add --yes");
    return kUsage;
  }
  int code = kSuccess;
  std::vector<std::string> names = LookUp(connection, context, options, &code);
  if (code != kSuccess && options.yes) return code;
  if (options.dry_run || !options.yes)
    names = ShowPreviews(connection, context, options, names, &code);
  if (options.dry_run) return code;
  if (!options.yes && !names.empty() && !IsConfirmed(context)) {
    context.console.Info("nothing was removed");
    return kFailure;
  }
  for (const std::string& name : names) {
    const absl::Status removed = Remove(connection, context, options, name);
    if (!removed.ok()) code = std::max(code, Fail(context, removed));
  }
  return code;
}

}  // namespace

Action DefineRm(Command* command) {
  auto options = std::make_shared<RmOptions>();
  command->Arguments(&options->names, "EXP", "Experiments, or analyses/ID");
  command->Flag(&options->yes, "--yes,-y",
                "Remove without asking, by whole names only; required if standard input isn't a "
                "terminal");
  command->Flag(&options->dry_run, "--dry-run",
                "Remove nothing; print the runs, analyses, device time and bytes that would be "
                "removed, and the runs that stay for other experiments");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "The same sizes are printed before the question. Bytes count the files that nothing else "
      "needs; checkpoints and arrays are kept in the server's trash for 7 days.\n\n"
      "Removing an extension (`ablate submit --extend`) lists the extended experiment again. An "
      "experiment that is extended can be removed, too; the preview names its extension.\n\n"
      "Without --yes, a unique prefix of an ID is enough. A name that several experiments have is "
      "refused: give the ID. In scripts write experiments/ID, which is used without a lookup.\n\n"
      "Removing analyses/ID, a whole name, removes its numbers and arrays; `ablate analyze` makes "
      "it again. An analysis that an experiment's file asks for stays listed as CANCELLED.\n\n"
      "Examples:\n  ablate rm names-norm --dry-run\n  ablate rm names-norm-7f3k --yes\n  ablate rm "
      "analyses/7f3kq2mn5xwa --yes");
  return WithServer(options, Rm);
}

}  // namespace ablate::client
