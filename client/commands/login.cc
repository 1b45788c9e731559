// `ablate login`: a server elsewhere, by its join file.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/host.h"
#include "client/command_table.h"
#include "client/logins.h"
#include "client/output/format.h"
#include "proto/join/join_file.h"

namespace ablate::client {
namespace {

struct LoginOptions {
  std::string address;
  std::string join;
  std::string name;
  bool json = false;
};

// The first part of a host's name; the whole of an address.
std::string NameOf(const v1::JoinFile& join) {
  const std::string& host = join.server_name();
  const bool is_name = host.find_first_not_of("0123456789.:") != std::string::npos &&
                       host.find(':') == std::string::npos;
  if (is_name) return host.substr(0, host.find('.'));
  std::string name = host;
  for (char& c : name) c = c == ':' ? '-' : c;
  return name;
}

using Who = absl::StatusOr<v1::WhoAmIResponse>;

// Asks by the address that was given if the certificate isn't for the join file's name: the same
// authority may have signed it for the address. Returns `first` if it didn't.
Who AskByAddress(const std::string& name, const Context& context, v1::JoinFile* join,
                 const Who& first) {
  const auto address = text::ParseHostPort(join->address());
  if (!address.ok() || address->host.text == join->server_name()) return first;
  Connection connection(
      {join->address(), name, address->host.text, join->certificate_authority(), join->token()},
      context.sleep);
  Who who = connection.Call(kWhoAmI, {});
  if (!who.ok()) return first;
  join->set_server_name(address->host.text);
  return who;
}

int Refuse(const Context& context, absl::string_view why) {
  context.console.Error(absl::StrCat("ablate login: ", why));
  return kUsage;
}

int Login(const LoginOptions& options, const Context& context) {
  auto join = join::ReadJoinFile(options.join);
  if (!join.ok()) return Fail(context, join.status());
  if (!options.address.empty()) {
    join->set_address(options.address);
    const absl::Status checked = join::CheckJoinFile(*join);
    if (!checked.ok()) return Refuse(context, checked.message());
  }
  const std::string name = options.name.empty() ? NameOf(*join) : options.name;
  if (absl::Status named = Logins::CheckName(name); !named.ok()) {
    return Refuse(context, absl::StrCat("--name: ", named.message()));
  }
  auto logins = Logins::Of(context.environment);
  if (!logins.ok()) return FailSettings(context, logins.status());
  // A server that does not let this user in is not kept.
  Connection connection(
      {join->address(), name, join->server_name(), join->certificate_authority(), join->token()},
      context.sleep);
  auto who = connection.Call(kWhoAmI, {});
  if (absl::IsUnavailable(who.status()) && !options.address.empty())
    who = AskByAddress(name, context, &*join, who);
  if (!who.ok()) return Fail(context, who.status());
  if (absl::Status added = logins->Add(name, *join); !added.ok()) return Fail(context, added);
  if (options.json) PrintJson(context, *who);
  context.console.Info(absl::StrCat(
      "logged in to ", name, " (", join->address(), ") as ", join->user(), ", ",
      v1::Role::Value_Name(who->role()), "; the token expires ",
      Until(join->expire_time(), context.now()), "; ", options.join, " may be deleted"));
  return kSuccess;
}

}  // namespace

Action DefineLogin(Command* command) {
  auto options = std::make_shared<LoginOptions>();
  command->OptionalArgument(&options->address, "ADDRESS",
                            "HOST:PORT, if it differs from the join file's, as through a tunnel");
  command->RequiredOption(&options->join, "--join", "FILE",
                          "Join file written by `ablate admin user add`, of mode 0600");
  command->Option(&options->name, "--name", "NAME",
                  "Name for the server [the first part of its host name]");
  command->Flag(&options->json, "--json", "Print the user, the server's message, as JSON");
  command->Footer(
      "Commands use this server from then on; `--server personal` selects the one on this "
      "machine.\n\n"
      "Example:\n  ablate login --join ada.join\n  ablate submit examples/names-norm.yaml");
  return [options](const Context& context) { return Login(*options, context); };
}

}  // namespace ablate::client
