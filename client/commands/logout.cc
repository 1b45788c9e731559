// `ablate logout`: forgets a server elsewhere.
#include <google/protobuf/empty.pb.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/logins.h"
#include "client/personal_server.h"

namespace ablate::client {
namespace {

struct LogoutOptions {
  std::string name;
  bool json = false;
};

int Logout(const LogoutOptions& options, const Context& context) {
  auto logins = Logins::Of(context.environment);
  if (!logins.ok()) return FailSettings(context, logins.status());
  std::string name = options.name;
  if (name.empty()) {
    const auto server = FindServer(context.environment);
    if (server.ok()) name = server->login;
  }
  if (name.empty()) {
    return Fail(context, absl::FailedPreconditionError(
                             "NAME: no login is in use; expected the name of a server"));
  }
  if (absl::Status removed = logins->Remove(name); !removed.ok()) return Fail(context, removed);
  if (options.json) PrintJson(context, google::protobuf::Empty());
  context.console.Info(
      absl::StrCat("logged out from ", name,
                   "; its token is deleted here, and stays valid until it expires or is revoked"));
  return kSuccess;
}

}  // namespace

Action DefineLogout(Command* command) {
  auto options = std::make_shared<LogoutOptions>();
  command->OptionalArgument(&options->name, "NAME", "Name of the server [the one in use]");
  command->Flag(&options->json, "--json", "Print an empty message as JSON");
  command->Footer(
      "The token stays valid until it expires or is revoked.\n\nExample:\n  ablate logout lab");
  return [options](const Context& context) { return Logout(*options, context); };
}

}  // namespace ablate::client
