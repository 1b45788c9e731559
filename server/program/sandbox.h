// Makes sandboxes by bubblewrap: own processes, no network, no capabilities, and no files except
// the system's, the environment's and the request's. Memory, files and processes are bounded
// elsewhere.
#ifndef ABLATE_SERVER_PROGRAM_SANDBOX_H_
#define ABLATE_SERVER_PROGRAM_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/program/request.h"

namespace ablate::program {

// Returns bwrap's options for a checked request, without descriptors and the command. They hold the
// program's variables, so pass them by --args: others can read a command line.
// `forks`: the program starts others in sandboxes inside of its own (warm_start.py), for which it
// may mount, make namespaces and give up capabilities; it must take all that from what it starts.
std::vector<std::string> SandboxOptions(const Request& request, bool forks = false);

// Explains an error that bwrap printed when it couldn't make a sandbox, with its remedy.
std::string ExplainSandboxError(absl::string_view printed);

// Runs `true` in the sandbox, with the real options. FAILED_PRECONDITION with the reason and its
// remedy if that fails. Takes some milliseconds.
absl::Status ProbeSandbox();

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_SANDBOX_H_
