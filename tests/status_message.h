// Returns the message of a status as a string, for matchers.
#ifndef ABLATE_TESTS_STATUS_MESSAGE_H_
#define ABLATE_TESTS_STATUS_MESSAGE_H_

#include <string>

#include "absl/status/status.h"

namespace ablate {

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace ablate

#endif  // ABLATE_TESTS_STATUS_MESSAGE_H_
