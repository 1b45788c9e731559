// `ablate rm EXP…`: remove experiments and the runs that nothing else has.
#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/utf8.h"

namespace ablate::client {
namespace {

struct Options {
  std::vector<std::string> experiments;
  bool yes = false;
  bool json = false;
};

// Asks whoever sits at the terminal; scripts are taken to know what they do.
bool IsMeant(const std::vector<std::string>& ids, const Context& context) {
  *context.console.err << "remove " << Printable(absl::StrJoin(ids, ", "))
                       << " and the runs that no other experiment has? [y/N] " << std::flush;
  std::string answer;
  std::getline(*context.console.in, answer);
  answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  return answer == "y" || answer == "yes";
}

int Remove(Connection* connection, const Context& context, const Options& options,
           const std::string& id) {
  v1::DeleteExperimentRequest request;
  request.set_name(ExperimentName(id));
  const absl::Status status = connection->DeleteExperiment(request);
  if (!status.ok()) return Fail(context, status);
  if (options.json) {
    *context.console.out << ToJson(google::protobuf::Empty());
  } else {
    context.console.Say(absl::StrCat("removed ", id));
  }
  return kSuccess;
}

int Rm(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  // What the beginnings of names stand for is looked up first, so that one sees what goes.
  std::vector<std::string> ids;
  int code = kSuccess;
  for (const std::string& name : options.experiments) {
    const absl::StatusOr<v1::Experiment> experiment = FindExperiment(connection->get(), name);
    if (experiment.ok()) {
      ids.push_back(Id(experiment->name()));
    } else {
      code = Fail(context, experiment.status());
    }
  }
  if (!ids.empty() && context.console.in_is_terminal && !options.yes && !IsMeant(ids, context)) {
    context.console.Say("nothing was removed");
    return kFailure;
  }
  for (const std::string& id : ids) {
    code = std::max(code, Remove(connection->get(), context, options, id));
  }
  return code;
}

}  // namespace

void AddRm(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("rm", "Remove ended or cancelled experiments and their runs");
  command.Arguments(&options->experiments, "EXP", "experiments");
  command.Flag(&options->yes, "--yes,-y", "do not ask, also on a terminal");
  command.Flag(&options->json, "--json", "print the server's message");
  command.Footer("Example:\n  ablate rm names-norm-7f3k --yes");
  command.Do([options](const Context& context) { return Rm(*options, context); });
}

}  // namespace ablate::client
