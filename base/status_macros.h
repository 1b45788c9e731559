// Returns errors early, by the spelling of Abseil's documentation.
#ifndef ABLATE_BASE_STATUS_MACROS_H_
#define ABLATE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates an expression of type absl::Status, and returns it from the function if it is an error.
#define RETURN_IF_ERROR(...)                                     \
  if (absl::Status ABLATE_STATUS_NAME(__LINE__) = (__VA_ARGS__); \
      ABLATE_STATUS_NAME(__LINE__).ok()) {                       \
  } else                                                         \
    return ABLATE_STATUS_NAME(__LINE__)

// Evaluates an expression of type absl::StatusOr. Returns its error from the function, or moves its
// value to `to`, a variable or a declaration: ASSIGN_OR_RETURN(const auto file, Open(path)).
#define ASSIGN_OR_RETURN(to, ...)                                                                  \
  auto ABLATE_STATUS_NAME(__LINE__) = (__VA_ARGS__);                                               \
  if (!ABLATE_STATUS_NAME(__LINE__).ok()) return std::move(ABLATE_STATUS_NAME(__LINE__)).status(); \
  to = *std::move(ABLATE_STATUS_NAME(__LINE__))

#define ABLATE_STATUS_NAME(line) ABLATE_STATUS_NAME_OF(line)
#define ABLATE_STATUS_NAME_OF(line) status_of_line_##line

#endif  // ABLATE_BASE_STATUS_MACROS_H_
