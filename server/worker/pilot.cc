#include "server/worker/pilot.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/reflect/text.h"

namespace ablate::worker {

absl::StatusOr<std::optional<absl::Duration>> ParseTimeLeft(absl::string_view text) {
  constexpr absl::string_view kNone[] = {"", "UNLIMITED", "NOT_SET", "INVALID"};
  if (std::find(std::begin(kNone), std::end(kNone), text) != std::end(kNone)) return std::nullopt;
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat(reflect::Quoted(text), " isn't a time; expected one such as 1-12:00:00"));
  std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('-', 1));
  uint32_t days = 0;
  const bool has_days = parts.size() == 2;
  if (has_days && !absl::SimpleAtoi(parts[0], &days)) return bad;
  const std::vector<absl::string_view> fields = absl::StrSplit(parts.back(), ':');
  if (fields.size() > 3 || (has_days && fields.size() != 3)) return bad;
  absl::Duration time;
  for (const absl::string_view field : fields) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(field, &number)) return bad;
    time = time * 60 + absl::Seconds(number);
  }
  return time + absl::Hours(24) * days;
}

}  // namespace ablate::worker
