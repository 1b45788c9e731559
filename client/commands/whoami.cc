// `ablate whoami`: which server, and as whom.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "client/personal_server.h"

namespace ablate::client {
namespace {

struct WhoamiOptions {
  bool json = false;
};

absl::StatusOr<int> WhoAmI(const WhoamiOptions& options, const Context& context,
                           Connection* connection) {
  ASSIGN_OR_RETURN(const auto who, connection->Call(kWhoAmI, {}));
  if (options.json) return PrintJson(context, who);
  ASSIGN_OR_RETURN(const auto server, FindServer(context.environment));
  Table table({{"server"}, {"address"}, {"user"}, {"role"}, {"token expires"}});
  table.Add({!server.login.empty() ? server.login
             : server.given        ? "—"
                                   : "personal",
             server.address, Id(who.user()), v1::Role::Value_Name(who.role()),
             who.has_expire_time() ? Until(who.expire_time(), context.now()) : "—"});
  return PrintTable(context, table);
}

}  // namespace

Action DefineWhoami(Command* command) {
  auto options = std::make_shared<WhoamiOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate whoami");
  return WithServer(options, WhoAmI);
}

}  // namespace ablate::client
