// `ablate cancel EXP…`: stop training what no other experiment wants.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"

namespace ablate::client {
namespace {

struct Options {
  std::vector<std::string> experiments;
  bool json = false;
};

absl::StatusOr<v1::Experiment> CancelOne(Connection* connection, const std::string& text) {
  const absl::StatusOr<std::string> name = ResolveExperimentName(connection, text);
  if (!name.ok()) return name.status();
  v1::CancelExperimentRequest request;
  request.set_name(*name);
  return connection->CancelExperiment(request);
}

absl::StatusOr<int> Cancel(const Options& options, const Context& context, Connection* connection) {
  int code = kSuccess;
  for (const std::string& text : options.experiments) {
    const absl::StatusOr<v1::Experiment> experiment = CancelOne(connection, text);
    if (!experiment.ok()) {
      code = std::max(code, Fail(context, experiment.status()));
    } else if (options.json) {
      PrintJson(context, *experiment);
    } else {
      context.console.Info(
          absl::StrCat(Id(experiment->name()), ": ", CountsText(experiment->counts())));
    }
  }
  return code;
}

}  // namespace

Action DefineCancel(Command* command) {
  auto options = std::make_shared<Options>();
  command->Arguments(&options->experiments, "EXP", "experiments");
  command->Flag(&options->json, "--json", "print the server's message, one for each experiment");
  command->Footer(
      "The beginning of a name will do if it is the only one; experiments/ID is taken as it is.\n\n"
      "Example:\n  ablate cancel names-norm-7f3k");
  return WithServer(options, Cancel);
}

}  // namespace ablate::client
