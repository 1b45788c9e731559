// `ablate rm NAME…`: remove experiments and the runs that nothing else has, or analyses.
#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/command_table.h"
#include "client/names.h"

namespace ablate::client {
namespace {

struct RmOptions {
  std::vector<std::string> names;
  bool yes = false;
  bool json = false;
};

bool IsAnalysis(const std::string& name) { return absl::StartsWith(name, "analyses/"); }

// Asks whoever sits at the terminal.
bool IsConfirmed(const std::vector<std::string>& names, const Context& context) {
  const auto add_id = [](std::string* text, const std::string& name) { text->append(Id(name)); };
  const bool runs = !std::all_of(names.begin(), names.end(), IsAnalysis);
  *context.console.err << "remove " << absl::StrJoin(names, ", ", add_id)
                       << (runs ? " and the runs that no other experiment has" : "") << "? [y/N] "
                       << std::flush;
  std::string answer;
  std::getline(*context.console.in, answer);
  answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  return answer == "y" || answer == "yes";
}

absl::Status DeleteExperiment(Connection* connection, const std::string& name) {
  v1::DeleteExperimentRequest request;
  request.set_name(name);
  return connection->DeleteExperiment(request);
}

absl::Status DeleteAnalysis(Connection* connection, const std::string& name) {
  v1::DeleteAnalysisRequest request;
  request.set_name(name);
  return connection->DeleteAnalysis(request);
}

absl::Status Remove(Connection* connection, const Context& context, const RmOptions& options,
                    const std::string& name) {
  const absl::Status status =
      IsAnalysis(name) ? DeleteAnalysis(connection, name) : DeleteExperiment(connection, name);
  if (!status.ok()) return status;
  if (options.json) {
    PrintJson(context, google::protobuf::Empty());
  } else {
    context.console.Info(absl::StrCat("removed ", Id(name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Rm(const RmOptions& options, const Context& context, Connection* connection) {
  if (!context.console.in_is_terminal && !options.yes) {
    context.console.Error(
        "ablate rm: standard input is not a terminal, so rm can't ask; add --yes");
    return kUsage;
  }
  // Names are looked up first, so that the question has the IDs.
  const Shortened shortened = options.yes ? Shortened::kRefused : Shortened::kAllowed;
  std::vector<std::string> names;
  int code = kSuccess;
  for (const std::string& text : options.names) {
    absl::StatusOr<std::string> name = text;
    if (!IsAnalysis(text)) name = ResolveExperimentName(connection, text, shortened);
    if (name.ok()) {
      names.push_back(*std::move(name));
    } else {
      code = Fail(context, name.status());
    }
  }
  if (!names.empty() && !options.yes && !IsConfirmed(names, context)) {
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
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Without --yes, a unique prefix of an ID is enough. A name that several experiments have is "
      "refused: give the ID. In scripts write experiments/ID, which is used without a lookup.\n\n"
      "Removing analyses/ID, a whole name, removes its numbers and arrays; `ablate analyze` makes "
      "it again. An analysis that an experiment's file asks for stays listed as CANCELLED.\n\n"
      "Examples:\n  ablate rm names-norm-7f3k --yes\n  ablate rm analyses/7f3kq2mn5xwa --yes");
  return WithServer(options, Rm);
}

}  // namespace ablate::client
