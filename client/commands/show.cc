// `ablate show EXP`: prints question, state and result per setting of an experiment.
#include <memory>
#include <string>

#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/show_experiment.h"

namespace ablate::client {
namespace {

struct ShowOptions {
  std::string experiment;
  bool json = false;
};

absl::StatusOr<int> Show(const ShowOptions& options, const Context& context,
                         Connection* connection) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, FindExperiment(connection, options.experiment));
  if (options.json) return PrintJson(context, experiment);
  RETURN_IF_ERROR(ShowExperiment(context, connection, experiment));
  return kSuccess;
}

}  // namespace

Action DefineShow(Command* command) {
  auto options = std::make_shared<ShowOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "The mean is over the DONE cells of a setting, of the last value of report.primary. A run "
      "whose last value isn't finite counts as diverged, as in `ablate compare`.\n\n"
      "extended by: the newer experiment that `ablate submit --extend` made of this one, as long "
      "as this one is archived.\n\n"
      "Example:\n  ablate show names-norm");
  return WithServer(options, Show);
}

}  // namespace ablate::client
