#include "server/service/run_page.h"

#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"

namespace ablate::service {

// Microseconds, experiment, place, kind of the value (0 missing, 1 number, 2 text), value. The
// value is last, because it may contain spaces.
std::string EncodePosition(const RunPagePosition& position) {
  const storage::RunPosition& after = position.after;
  std::string value;
  if (const auto* number = std::get_if<double>(&after.value)) {
    text::AppendDecimal(*number, &value);
  } else if (const auto* text = std::get_if<std::string>(&after.value)) {
    value = *text;
  }
  return absl::StrCat(absl::ToUnixMicros(position.now), " ", after.experiment, " ", after.place,
                      " ", after.value.index(), " ", value);
}

bool DecodePosition(absl::string_view text, RunPagePosition* position) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(' ', 4));
  int64_t now = 0;
  int kind = 0;
  storage::RunPosition& after = position->after;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[0], &now) ||
      !absl::SimpleAtoi(parts[2], &after.place) || !absl::SimpleAtoi(parts[3], &kind)) {
    return false;
  }
  position->now = absl::FromUnixMicros(now);
  after.experiment = std::string(parts[1]);
  after.value = {};
  if (kind == 1) {
    double number = 0;
    if (!absl::SimpleAtod(parts[4], &number) || std::isnan(number)) return false;
    after.value = number;
  } else if (kind == 2) {
    after.value = std::string(parts[4]);
  }
  return kind >= 0 && kind <= 2;
}

}  // namespace ablate::service
