// `ablate rm EXP…`: remove experiments and the runs that nothing else has.
#include <google/protobuf/empty.pb.h>

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

namespace ablate::client {
namespace {

struct Options {
  std::vector<std::string> experiments;
  bool yes = false;
  bool json = false;
};

// Asks whoever sits at the terminal; scripts are taken to know what they do.
bool IsMeant(const Options& options, const Context& context) {
  if (options.yes || !context.console.in_is_terminal) return true;
  *context.console.err << "remove " << absl::StrJoin(options.experiments, ", ")
                       << " and the runs that no other experiment has? [y/N] " << std::flush;
  std::string answer;
  std::getline(*context.console.in, answer);
  answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  return answer == "y" || answer == "yes";
}

int Rm(const Options& options, const Context& context) {
  if (!IsMeant(options, context)) {
    context.console.Say("nothing was removed");
    return kFailure;
  }
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  int code = kSuccess;
  for (const std::string& name : options.experiments) {
    v1::DeleteExperimentRequest request;
    request.set_name(ExperimentName(name));
    const absl::Status status = (*connection)->DeleteExperiment(request);
    if (!status.ok()) {
      code = Fail(context, status);
    } else if (options.json) {
      *context.console.out << ToJson(google::protobuf::Empty());
    } else {
      context.console.Say(absl::StrCat("removed ", Id(request.name())));
    }
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
