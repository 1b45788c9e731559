// What a command has to do with the world.
#include "client/context.h"

#include <string>

#include "client/exit_code.h"

namespace ablate::client {

absl::StatusOr<std::unique_ptr<Connection>> Connect(const Context& context) {
  const absl::StatusOr<std::string> address = FindServer(context.environment);
  if (!address.ok()) return address.status();
  return std::make_unique<Connection>(*address, context.sleep);
}

int Fail(const Context& context, const absl::Status& status) {
  context.console.Error(status.message().empty() ? absl::StatusCodeToString(status.code())
                                                 : std::string(status.message()));
  return absl::IsUnavailable(status) ? kNoServer : kFailure;
}

}  // namespace ablate::client
