// Runs a program of this machine, such as squeue, and returns what it prints.
#ifndef ABLATE_CLIENT_CLUSTER_TOOL_H_
#define ABLATE_CLIENT_CLUSTER_TOOL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::client {

// Returns a text as one word of a POSIX shell.
std::string ShellWord(absl::string_view text);

// Returns standard output and error of a program of PATH that takes `input` and ends within 30 s.
// UNAVAILABLE with both if it can't be started, fails, or takes longer.
absl::StatusOr<std::string> RunTool(const std::vector<std::string>& words,
                                    const std::string& input = "");

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CLUSTER_TOOL_H_
