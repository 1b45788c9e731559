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

absl::StatusOr<int> Watch(const WatchOptions& options, const Context& context,
                          Connection* connection) {
  const absl::StatusOr<v1::Experiment> experiment = FindExperiment(connection, options.experiment);
  if (!experiment.ok()) return experiment.status();
  std::ostream* out = context.console.out;
  const absl::StatusOr<v1::Experiment> ended =
      options.json ? Follow(connection, context, *experiment,
                            [&](const v1::ExperimentEvent& event) {
                              *out << ToJsonLine(event) << std::flush;
                            })
                   : FollowWithProgress(connection, context, *experiment, out,
                                        context.console.out_is_terminal);
  if (!ended.ok()) return ended.status();
  PrintOutcome(context, *ended);
  return kSuccess;
}

}  // namespace

Action DefineWatch(Command* command) {
  auto options = std::make_shared<WatchOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", "Print each event as one line of JSON");
  command->Footer(
      "On a terminal one line is updated. In a pipe or file a line is printed for each tenth of "
      "the work, and at least every 10 minutes.\n\n"
      "Example:\n  ablate watch names-norm");
  return WithServer(options, Watch);
}

}  // namespace ablate::client
