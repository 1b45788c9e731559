// `ablate down`: ends the personal server.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/number_text.h"
#include "client/server_process.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {
namespace {

// Workers save the state of their runs first.
constexpr absl::Duration kPatience = absl::Seconds(60);

struct Options {
  std::string home;
  bool json = false;
};

void PrintJson(const Home& home, bool was_up, const Context& context) {
  google::protobuf::Struct message;
  (*message.mutable_fields())["home"].set_string_value(home.folder);
  (*message.mutable_fields())["was_up"].set_bool_value(was_up);
  *context.console.out << ToJson(message);
}

int Down(const Options& options, const Context& context) {
  const absl::StatusOr<Home> home = FindHome(options.home, context.environment);
  if (!home.ok()) return Fail(context, home.status());
  absl::StatusOr<ServerProcess> server = ServerProcess::Find(*home);
  if (!server.ok()) {
    context.console.Say(server.status().message());
    if (options.json) PrintJson(*home, false, context);
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
  if (options.json) PrintJson(*home, true, context);
  return kSuccess;
}

}  // namespace

void AddDown(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("down", "Stop the personal server; its runs go on after the next up");
  command.Option(&options->home, "--home", "FOLDER", kHomeHelp);
  command.Flag(&options->json, "--json", "print its folder and whether it was up");
  command.Footer("Example:\n  ablate down");
  command.Do([options](const Context& context) { return Down(*options, context); });
}

}  // namespace ablate::client
