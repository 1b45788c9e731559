// Numbers as people read them, and as programs do.
#ifndef ABLATE_CLIENT_NUMBER_TEXT_H_
#define ABLATE_CLIENT_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace ablate::client {

// The shortest decimal that reads back as the same double; nan, inf, -inf.
std::string Exact(double value);
// Four significant digits.
std::string Short(double value);
// 40 MB: powers of 1000, two significant digits or whole bytes.
std::string Bytes(uint64_t bytes);
// 6 s, 3 min 20 s, 2 h 5 min, 3 d 4 h.
std::string Duration(absl::Duration duration);
// 5 s ago, 3 h ago; of a time in the future: just now.
std::string Ago(absl::Time time, absl::Time now);
// "1 run", "3 runs".
std::string Count(uint64_t count, const char* singular);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_NUMBER_TEXT_H_
