// Values of the options --programs and --environment, which the server passes to its worker.
#ifndef ABLATE_SERVER_LAUNCH_PROGRAM_OPTIONS_H_
#define ABLATE_SERVER_LAUNCH_PROGRAM_OPTIONS_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace ablate::launch {

inline constexpr char kSandboxed[] = "sandboxed", kUnsandboxed[] = "unsandboxed", kOff[] = "off";

// Returns the problem of an environment; empty for NAME=PATH or NAME=PATH:FOLDER:… with absolute
// paths.
inline std::string EnvironmentProblem(const std::string& given) {
  const size_t sign = given.find('=');
  const bool absolute = sign != 0 && sign != std::string::npos && given[sign + 1] == '/' &&
                        !absl::StrContains(absl::StrReplaceAll(given, {{":/", ""}}), ':');
  return absolute ? "" : absl::StrCat("must be NAME=PATH[:FOLDER…], is ", given);
}

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_PROGRAM_OPTIONS_H_
