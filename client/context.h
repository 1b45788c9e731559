// What a command has to do with the world: the console, the environment, the clock, the server.
#ifndef ABLATE_CLIENT_CONTEXT_H_
#define ABLATE_CLIENT_CONTEXT_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/console.h"
#include "client/home.h"

namespace ablate::client {

struct Context {
  Console console;
  Environment environment;
  std::function<absl::Time()> now;
  Sleep sleep;
};

// A connection to the server that the environment names.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const Context& context);

// Says what went wrong; the result is the exit code for it.
int Fail(const Context& context, const absl::Status& status);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CONTEXT_H_
