// `ablate cancel NAME…`: cancels experiments or analyses; runs that others share go on.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"

namespace ablate::client {
namespace {

struct CancelOptions {
  std::vector<std::string> names;
  bool json = false;
};

// Prints the new state.
template <typename Message>
absl::Status Print(const CancelOptions& options, const Context& context,
                   const absl::StatusOr<Message>& cancelled,
                   std::string (*describe)(const Message&)) {
  if (!cancelled.ok()) return cancelled.status();
  if (options.json) {
    PrintJson(context, *cancelled);
  } else {
    context.console.Info(absl::StrCat(Id(cancelled->name()), ": ", describe(*cancelled)));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Experiment> CancelExperiment(Connection* connection, const std::string& text) {
  ASSIGN_OR_RETURN(const std::string name,
                   ResolveExperimentName(connection, text, Shortened::kAllowed));
  v1::CancelExperimentRequest request;
  request.set_name(name);
  return connection->Call(kCancelExperiment, request);
}

// `name` may be shortened: ids of analyses are equally long, so that a whole one begins no other.
absl::StatusOr<v1::Analysis> CancelAnalysis(Connection* connection, const std::string& name) {
  v1::GetAnalysisRequest wanted;
  wanted.set_name(name);
  const absl::StatusOr<v1::Analysis> analysis = connection->Call(kGetAnalysis, wanted);
  if (!analysis.ok()) return analysis;
  v1::CancelAnalysisRequest request;
  request.set_name(analysis->name());
  return connection->Call(kCancelAnalysis, request);
}

absl::Status CancelOne(const CancelOptions& options, const std::string& name,
                       const Context& context, Connection* connection) {
  if (absl::StartsWith(name, "analyses/")) {
    return Print<v1::Analysis>(
        options, context, CancelAnalysis(connection, name),
        [](const v1::Analysis& it) { return v1::AnalysisState::Value_Name(it.state()); });
  }
  return Print<v1::Experiment>(options, context, CancelExperiment(connection, name),
                               [](const v1::Experiment& it) { return CountsText(it.counts()); });
}

absl::StatusOr<int> Cancel(const CancelOptions& options, const Context& context,
                           Connection* connection) {
  int code = kSuccess;
  for (const std::string& name : options.names) {
    const absl::Status cancelled = CancelOne(options, name, context, connection);
    if (!cancelled.ok()) code = std::max(code, Fail(context, cancelled));
  }
  return code;
}

}  // namespace

Action DefineCancel(Command* command) {
  auto options = std::make_shared<CancelOptions>();
  command->Arguments(&options->names, "EXP", "Experiments, or analyses/ID");
  command->Flag(&options->json, "--json", "Print the server's message for each as JSON");
  command->Footer(
      "Runs that other experiments share go on. Cancelled runs keep their training state until "
      "`ablate rm`; submitted again, they continue from it.\n\n"
      "A unique prefix of an ID is enough. A name that several experiments have is refused: give "
      "the ID. experiments/ID is used without a lookup.\n\n"
      "Examples:\n  ablate cancel names-norm-7f3k\n  ablate cancel analyses/7f3k");
  return WithServer(options, Cancel);
}

}  // namespace ablate::client
