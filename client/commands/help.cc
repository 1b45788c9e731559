// `ablate help [COMMAND]`: prints help. The command line replaces `help COMMAND` by COMMAND --help.
#include <memory>
#include <string>
#include <vector>

#include "client/command_table.h"

namespace ablate::client {
namespace {

struct HelpOptions {
  std::vector<std::string> command;
  bool markdown = false;
};

}  // namespace

Action DefineHelp(Command* command) {
  auto options = std::make_shared<HelpOptions>();
  command->OptionalArguments(&options->command, "COMMAND", "Command and its subcommand [all]");
  command->Flag(&options->markdown, "--markdown",
                "Print the help of all commands as a page of Markdown");
  command->Footer("Example:\n  ablate help data add");
  return [options, help = *command](const Context& context) {
    if (!options->markdown) return kUsage;  // after `help -- COMMAND` alone
    *context.console.out << help.HelpPage();
    return kSuccess;
  };
}

}  // namespace ablate::client
