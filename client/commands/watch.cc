// `ablate watch EXP`: how far an experiment is, until it has ended.
#include <memory>
#include <string>

#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "client/json.h"
#include "client/names.h"

namespace ablate::client {
namespace {

struct Options {
  std::string experiment;
  bool json = false;
};

int Watch(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::Experiment> experiment =
      FindExperiment(connection->get(), options.experiment);
  if (!experiment.ok()) return Fail(context, experiment.status());
  std::ostream* out = context.console.out;
  const absl::StatusOr<v1::Experiment> ended =
      options.json ? Follow(connection->get(), context, *experiment,
                            [&](const v1::ExperimentEvent& event) {
                              *out << ToJsonLine(event) << std::flush;
                            })
                   : FollowWithProgress(connection->get(), context, *experiment, out,
                                        context.console.out_is_terminal);
  if (!ended.ok()) return Fail(context, ended.status());
  SayHowItEnded(context, *ended);
  return kSuccess;
}

}  // namespace

void AddWatch(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("watch", "Follow an experiment until it has ended");
  command.Argument(&options->experiment, "EXP", "experiment");
  command.Flag(&options->json, "--json", "print every event, one JSON message a line");
  command.Footer("Example:\n  ablate watch names-norm");
  command.Do([options](const Context& context) { return Watch(*options, context); });
}

}  // namespace ablate::client
