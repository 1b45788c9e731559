// `ablate cancel EXP…`: stop training what no other experiment wants.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "client/json.h"
#include "client/names.h"

namespace ablate::client {
namespace {

struct Options {
  std::vector<std::string> experiments;
  bool json = false;
};

int CancelOne(Connection* connection, const Context& context, const Options& options,
              const std::string& text) {
  const absl::StatusOr<std::string> name = WholeExperimentName(connection, text);
  if (!name.ok()) return Fail(context, name.status());
  v1::CancelExperimentRequest request;
  request.set_name(*name);
  const absl::StatusOr<v1::Experiment> experiment = connection->CancelExperiment(request);
  if (!experiment.ok()) return Fail(context, experiment.status());
  if (options.json) {
    *context.console.out << ToJson(*experiment);
  } else {
    context.console.Say(
        absl::StrCat(Id(experiment->name()), ": ", CountsText(experiment->counts())));
  }
  return kSuccess;
}

int Cancel(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  int code = kSuccess;
  for (const std::string& text : options.experiments) {
    code = std::max(code, CancelOne(connection->get(), context, options, text));
  }
  return code;
}

}  // namespace

void AddCancel(Command root) {
  auto options = std::make_shared<Options>();
  Command command =
      root.Add("cancel", "Cancel experiments; runs that others share go on for those");
  command.Arguments(&options->experiments, "EXP", "experiments");
  command.Flag(&options->json, "--json", "print the server's message, one for each experiment");
  command.Footer(
      "The beginning of a name will do if it is the only one; experiments/ID is taken as it is.\n\n"
      "Example:\n  ablate cancel names-norm-7f3k");
  command.Do([options](const Context& context) { return Cancel(*options, context); });
}

}  // namespace ablate::client
