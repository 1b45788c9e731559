// The token of a watch: up to where its holder knows an experiment, in which file.
#include "server/service/watch_token.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"

namespace ablate::service {

std::string WatchToken(absl::string_view generation, uint64_t change) {
  return absl::StrCat(generation, ".", change);
}

absl::StatusOr<uint64_t> ParseWatchToken(absl::string_view token, absl::string_view generation,
                                         uint64_t newest) {
  if (token.empty()) return uint64_t{0};
  const size_t dot = token.rfind('.');
  uint64_t change = 0;
  if (dot == absl::string_view::npos || dot == 0 ||
      !absl::SimpleAtoi(token.substr(dot + 1), &change)) {
    return InvalidField("token", absl::StrCat(reflect::Quoted(token), " is none"),
                        "the token of an earlier event");
  }
  if (token.substr(0, dot) != generation || change > newest) {
    return WithReason(
        absl::OutOfRangeError(absl::StrCat(
            "token is ", reflect::Quoted(token),
            ", which this server's data do not reach back to: watch again without a token")),
        "TOKEN_EXPIRED");
  }
  return change;
}

}  // namespace ablate::service
