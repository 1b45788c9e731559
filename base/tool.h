// Runs another program, such as squeue, and returns what it prints.
#ifndef ABLATE_BASE_TOOL_H_
#define ABLATE_BASE_TOOL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::process {

// Returns a text as one word of a POSIX shell.
std::string ShellWord(absl::string_view text);

// Runs a program of PATH with `input` as its standard input. Returns what it has written to
// standard output and error until it ended. UNAVAILABLE with that, cleaned (text::CleanText), if it
// fails or takes longer than `timeout`, after which it is killed with its session.
absl::StatusOr<std::string> RunTool(const std::vector<std::string>& words,
                                    absl::string_view input = "",
                                    absl::Duration timeout = absl::Seconds(30));

}  // namespace ablate::process

#endif  // ABLATE_BASE_TOOL_H_
