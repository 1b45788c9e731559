// Runs a program to its end: text in, bytes out, within limits.
#ifndef ABLATE_SERVER_REPORT_FIGURE_PROCESS_H_
#define ABLATE_SERVER_REPORT_FIGURE_PROCESS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::figure {

struct ProcessLimits {
  absl::Duration time = absl::Seconds(60);
  size_t output_bytes = size_t{64} << 20;
  std::function<bool()> cancelled;  // asked some times a second; may be empty
};

// Runs `program` (a path) with `arguments` and nothing but `environment`, `input` on stdin; its
// stdout. Errors: NOT_FOUND if it can't be started, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (output)
// and CANCELLED after killing it, INTERNAL with the end of its stderr if it fails. Blocks;
// thread-safe.
absl::StatusOr<std::string> RunProcess(const std::string& program,
                                       const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& environment,
                                       absl::string_view input, const ProcessLimits& limits);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_PROCESS_H_
