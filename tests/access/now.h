// Fixes the time of the certificate tests.
#ifndef ABLATE_TESTS_ACCESS_NOW_H_
#define ABLATE_TESTS_ACCESS_NOW_H_

#include "absl/time/time.h"

namespace ablate::access {

inline const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00:00 UTC

}  // namespace ablate::access

#endif  // ABLATE_TESTS_ACCESS_NOW_H_
