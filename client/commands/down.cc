// `ablate down`: ends the personal server.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/number_text.h"
#include "client/server_process.h"

namespace ablate::client {
namespace {

// Workers save the state of their runs first.
constexpr absl::Duration kPatience = absl::Seconds(60);

int Down(const std::string& folder, const Context& context) {
  const absl::StatusOr<Home> home = FindHome(folder, context.environment);
  if (!home.ok()) return Fail(context, home.status());
  absl::StatusOr<ServerProcess> server = ServerProcess::Find(*home);
  if (!server.ok()) {
    context.console.Say(server.status().message());
    return kSuccess;
  }
  const absl::Status asked = server->AskToEnd();
  if (!asked.ok()) return Fail(context, asked);
  if (!server->WaitUntilGone(kPatience)) {
    context.console.Error(absl::StrCat("process ", server->pid(), " still runs after ",
                                       Duration(kPatience), "; its log: ", home->log_file));
    return kFailure;
  }
  context.console.Say(absl::StrCat("down: ", home->folder));
  return kSuccess;
}

}  // namespace

void AddDown(Command root) {
  auto home = std::make_shared<std::string>();
  Command command = root.Add("down", "Stop the personal server; its runs go on after the next up");
  command.Option(home.get(), "--home", "FOLDER",
                 "its folder [$ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate]");
  command.Footer("Example:\n  ablate down");
  command.Do([home](const Context& context) { return Down(*home, context); });
}

}  // namespace ablate::client
