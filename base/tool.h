// Runs another program, such as squeue, and returns what it prints.
#ifndef ABLATE_BASE_TOOL_H_
#define ABLATE_BASE_TOOL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

// Returns a text as one word of a POSIX shell.
std::string ShellWord(absl::string_view text);

// Runs a program of PATH with `input`, at most 100 kB, as its standard input. Returns what it has
// written to standard output and error. UNAVAILABLE with that if it fails, or takes longer than
// 30 s, after which it is ended with its children.
absl::StatusOr<std::string> RunTool(const std::vector<std::string>& words,
                                    absl::string_view input = "");

}  // namespace ablate::process

#endif  // ABLATE_BASE_TOOL_H_
