// The token of a watch: up to where its holder knows an experiment, in which file.
#ifndef ABLATE_SERVER_SERVICE_WATCH_TOKEN_H_
#define ABLATE_SERVER_SERVICE_WATCH_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::service {

std::string WatchToken(absl::string_view generation, uint64_t change);

// The change number in `token`; 0 for no token. INVALID_ARGUMENT if it is not a token; OUT_OF_RANGE
// if it is another generation's or later than `newest`.
absl::StatusOr<uint64_t> ParseWatchToken(absl::string_view token, absl::string_view generation,
                                         uint64_t newest);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WATCH_TOKEN_H_
