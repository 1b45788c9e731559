// `ablate wait EXP`: return when an experiment has ended, with an exit code that says how.
#include <memory>
#include <string>

#include "client/command_table.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

struct WaitOptions {
  std::string experiment;
  bool json = false;
};

int Wait(const WaitOptions& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return FailSettings(context, connection.status());
  absl::StatusOr<v1::Experiment> experiment = FindExperiment(connection->get(), options.experiment);
  if (experiment.ok() && experiment->state() == v1::ExperimentState::ACTIVE) {
    // Only a terminal gets progress; a script needs only the outcome.
    experiment =
        context.console.err_is_terminal
            ? FollowWithProgress(connection->get(), context, *experiment, context.console.err,
                                 context.console.err_is_live())
            : Follow(connection->get(), context, *experiment, [](const v1::ExperimentEvent&) {});
  }
  if (experiment.ok() && options.json) PrintJson(context, *experiment);
  return FinishWait(context, connection->get(), experiment);
}

}  // namespace

Action DefineWait(Command* command) {
  auto options = std::make_shared<WaitOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", "Print the ended experiment as JSON");
  command->Footer(
      "Exit codes:\n"
      "  0   every run is DONE or DIVERGED, and every analysis of the file DONE\n"
      "  1   a run or analysis FAILED, or the analyses could not be requested\n"
      "  2   the experiment, a run or an analysis was cancelled\n"
      "  69  no server has answered for a minute\n"
      "  70  waiting failed otherwise, such as for an unknown experiment\n\n"
      "Example:\n  ablate wait names-norm && ablate show names-norm");
  return [options](const Context& context) { return Wait(*options, context); };
}

}  // namespace ablate::client
