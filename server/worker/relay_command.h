// The subcommand `ablate-worker relay`: its options, and the relay until a signal ends it.
#ifndef ABLATE_SERVER_WORKER_RELAY_COMMAND_H_
#define ABLATE_SERVER_WORKER_RELAY_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>

namespace ablate::worker {

inline constexpr int kNoServerExit = 6;  // the join file can't be used

struct RelayFlags {
  std::string listen;
  std::string to;
  std::string join;
};

// Returns the problem of "HOST:PORT", or "".
std::string AddressProblem(const std::string& address);

// Adds the subcommand, whose options are stored in `flags`, which must live as long as `app`.
// Parsing fails with CLI::ParseError if they contradict each other or options of the worker.
const CLI::App* DefineRelay(CLI::App& app, RelayFlags& flags);

// Relays until SIGTERM or SIGINT. Returns the exit code; an error is the last line on standard
// error. Must be called before any thread is started.
int RunRelay(const RelayFlags& flags);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RELAY_COMMAND_H_
