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
                             "commands talk to no server that was logged in to: name one"));
  }
  if (absl::Status removed = logins->Remove(name); !removed.ok()) return Fail(context, removed);
  if (options.json) PrintJson(context, google::protobuf::Empty());
  context.console.Info(
      absl::StrCat("logged out from ", name,
                   ": its token is forgotten here, and good until it expires or is revoked"));
  return kSuccess;
}

}  // namespace

Action DefineLogout(Command* command) {
  auto options = std::make_shared<LogoutOptions>();
  command->OptionalArgument(&options->name, "NAME", "of the server [the one commands talk to]");
  command->Flag(&options->json, "--json", "print an empty message");
  command->Footer("Example:\n  ablate logout box");
  return [options](const Context& context) { return Logout(*options, context); };
}

}  // namespace ablate::client
