// Asks for a gate's decision and returns it as an exit code, for `ablate judge` and
// `ablate compare --gate`.
#ifndef ABLATE_CLIENT_GATE_H_
#define ABLATE_CLIENT_GATE_H_

#include <optional>
#include <string>

#include "ablate/v1/comparison.pb.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// Exit codes of a gate. None is that of an error.
inline constexpr int kNotShown = 1;
inline constexpr int kWorse = 2;
inline constexpr int kCannotSay = 3;
inline constexpr int kBadData = 65;  // EX_DATAERR of sysexits.h: there is no decision

inline constexpr char kGateExitCodes[] =
    "Exit codes: 0 established better, 1 not shown, 2 established worse, 3 more pairs are needed "
    "before it can say, 65 the results can't be judged.";

struct GateOptions {
  bool looks = false;
  bool next = false;
  std::optional<double> level;
  std::string session;  // file
};

// Adds --looks, --session, --level and --next.
void AddGateOptions(Command* command, GateOptions* options);

// Returns the request. INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<v1::GateRequest> MakeGateRequest(const GateOptions& options);

// Prints the comparison and its gate, and the next setting alone with --next. Returns the exit
// code.
absl::StatusOr<int> PrintGate(const v1::Comparison& comparison, const GateOptions& options,
                              bool json, const Context& context);

// Calls the server like CallServer, with kBadData for errors of the request. Starts the personal
// server if that is to be used and none runs.
int RunGate(const Context& context,
            absl::FunctionRef<absl::StatusOr<int>(Connection* connection)> run);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_GATE_H_
