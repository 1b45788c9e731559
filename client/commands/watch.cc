// `ablate watch EXP`: how far an experiment is, until it has ended.
#include <memory>
#include <string>

#include "client/command_table.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

struct WatchOptions {
  std::string experiment;
  bool json = false;
};

int Watch(const WatchOptions& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return FailSettings(context, connection.status());
  const absl::StatusOr<v1::Experiment> experiment =
      FindExperiment(connection->get(), options.experiment);
  if (!experiment.ok()) return FailToWait(context, experiment.status());
  if (!options.json) {
    return FinishWait(context, connection->get(),
                      FollowWithProgress(connection->get(), context, *experiment,
                                         context.console.out, context.console.out_is_live()));
  }
  return FinishWait(
      context, connection->get(),
      FollowCells(connection->get(), context, *experiment, [&](const v1::ExperimentEvent& event) {
        context.console.data() << ToJsonLine(event) << std::flush;
      }));
}

}  // namespace

Action DefineWatch(Command* command) {
  auto options = std::make_shared<WatchOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", "Print each event as one line of JSON");
  command->Footer(
      "On a terminal, a screen shows progress, lanes and the mean of each setting so far, and at "
      "the end the verdict. Ctrl-C leaves the experiment running. In a pipe or file, or if TERM is "
      "dumb, a line is printed for each tenth of the work and every 10 minutes. Exits as `ablate "
      "wait` does.\n\n"
      "Example:\n  ablate watch names-norm");
  return [options](const Context& context) { return Watch(*options, context); };
}

}  // namespace ablate::client
