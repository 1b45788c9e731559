// `ablate help [COMMAND]`: prints help. The command line replaces `help COMMAND` by COMMAND --help.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/manual.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

struct HelpOptions {
  std::vector<std::string> command;
  bool markdown = false;
  std::string manual;  // a folder
  bool force = false;
};

int ShowManual(const HelpOptions& options, const Command& help, const Context& context) {
  const auto pages = help.ManualPages();
  const absl::Status written = WriteManual(pages, options.manual, options.force);
  if (!written.ok()) return Fail(context, written);
  context.console.Info(absl::StrCat(options.manual, ": ", Count(pages.size(), "page")));
  return kSuccess;
}

}  // namespace

Action DefineHelp(Command* command) {
  auto options = std::make_shared<HelpOptions>();
  command->OptionalArguments(&options->command, "COMMAND", "Command and its subcommand [all]");
  command->Flag(&options->markdown, "--markdown",
                "Print the help of all commands as a page of Markdown");
  command->Option(&options->manual, "--man", "FOLDER",
                  "Write the help of all commands to FOLDER as pages for man");
  command->Flag(&options->force, "--force", "Replace existing pages");
  command->Footer("Examples:\n  ablate help data add\n  ablate help --man ~/.local/share/man/man1");
  return [options, help = *command](const Context& context) {
    if (!options->manual.empty()) return ShowManual(*options, help, context);
    if (!options->markdown) return kUsage;  // after `help -- COMMAND` alone
    *context.console.out << help.HelpPage();
    return kSuccess;
  };
}

}  // namespace ablate::client
