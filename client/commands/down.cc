// `ablate down`: ends the personal server.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/output/format.h"
#include "client/personal_server.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {
namespace {

struct DownOptions {
  std::string home;
  bool json = false;
};

void PrintResult(const Home& home, bool was_up, const Context& context) {
  google::protobuf::Struct message;
  (*message.mutable_fields())["home"].set_string_value(home.folder);
  (*message.mutable_fields())["was_up"].set_bool_value(was_up);
  PrintJson(context, message);
}

int Down(const DownOptions& options, const Context& context) {
  const absl::StatusOr<Home> home = FindHome(options.home, context.environment);
  if (!home.ok()) return FailSettings(context, home.status());
  absl::StatusOr<ServerProcess> server = ServerProcess::Find(*home);
  if (!server.ok()) {
    context.console.Info(server.status().message());
    if (options.json) PrintResult(*home, false, context);
    return kSuccess;
  }
  const absl::Status asked = server->Terminate();
  if (!asked.ok()) return Fail(context, asked);
  if (!server->WaitForExit(kEndTimeout)) {
    context.console.Error(absl::StrCat("process ", server->pid(), " still runs after ",
                                       Duration(kEndTimeout), "; its log: ", home->log_file));
    return kFailure;
  }
  context.console.Info(absl::StrCat("down: ", home->folder));
  if (options.json) PrintResult(*home, true, context);
  return kSuccess;
}

}  // namespace

Action DefineDown(Command* command) {
  auto options = std::make_shared<DownOptions>();
  command->Option(&options->home, "--home", "FOLDER", kHomeHelp);
  command->Flag(&options->json, "--json", "Print the folder, and whether a server ran, as JSON");
  command->Footer("Example:\n  ablate down");
  return [options](const Context& context) { return Down(*options, context); };
}

}  // namespace ablate::client
