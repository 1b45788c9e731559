// Finds the program of a command before it is started, so that a missing one is named clearly.
#ifndef ABLATE_SERVER_PROGRAM_COMMAND_H_
#define ABLATE_SERVER_PROGRAM_COMMAND_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/program/layout.h"
#include "server/program/request.h"

namespace ablate::program {

// The numbers of the program's descriptors, which ABLATE_METRICS and ABLATE_REPLIES name.
inline constexpr int kMetricsDescriptor = 3;
inline constexpr int kRepliesDescriptor = 4;

// Returns the program's whole environment: defaults, the request's variables, and the descriptors.
std::map<std::string, std::string> ProgramVariables(const Request& request);

// Returns the program's path as the program sees it, found like execvp does: by PATH, or relative
// to the working folder if it has a slash. NOT_FOUND "command not found: NAME";
// FAILED_PRECONDITION if it isn't executable or the interpreter of its first line is missing.
absl::StatusOr<std::string> FindCommand(const Layout& layout, const std::string& program,
                                        const std::string& search_path,
                                        const std::string& working_folder);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_COMMAND_H_
