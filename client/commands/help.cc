// `ablate help [COMMAND]`: prints help. The command line replaces `help COMMAND` by COMMAND --help.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/output/format.h"
#include "client/output/part_file.h"

namespace ablate::client {
namespace {

struct HelpOptions {
  std::vector<std::string> command;
  bool markdown = false;
  std::string manual;  // a folder
  bool force = false;
};

int WriteManual(const HelpOptions& options, const Command& help, const Context& context) {
  const std::string& folder = options.manual;
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // otherwise the first file can't be written
  const auto pages = help.ManualPages();
  for (const auto& [name, page] : pages) {
    const absl::Status written =
        WriteFile(Output{absl::StrCat(folder, "/", name), options.force}, page);
    if (!written.ok()) return Fail(context, written);
  }
  context.console.Info(absl::StrCat(folder, ": ", Count(pages.size(), "page")));
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
    if (!options->manual.empty()) return WriteManual(*options, help, context);
    if (!options->markdown) return kUsage;  // after `help -- COMMAND` alone
    *context.console.out << help.HelpPage();
    return kSuccess;
  };
}

}  // namespace ablate::client
