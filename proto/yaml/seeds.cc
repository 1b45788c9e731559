#include "proto/yaml/seeds.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace ablate::yaml {
namespace {

struct SeedRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

absl::StatusOr<SeedRange> ParseRange(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits("..", 1));
  const bool single = text.find("..") == absl::string_view::npos;
  SeedRange range;
  if (!absl::SimpleAtoi(ends.first, &range.first) ||
      !absl::SimpleAtoi(single ? ends.first : ends.second, &range.last)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" is not a seed; expected 0 to 4294967295, or a range such as 0..9"));
  }
  if (range.last < range.first) {
    return absl::InvalidArgumentError(
        absl::StrCat("the range \"", text, "\" ends before it begins; expected FIRST..LAST"));
  }
  return range;
}

}  // namespace

absl::StatusOr<v1::Seeds> ParseSeeds(absl::string_view text) {
  v1::Seeds seeds;
  if (text.find_first_of(".,") == absl::string_view::npos) {
    uint32_t count = 0;
    if (absl::SimpleAtoi(text, &count) && count >= 1 && count <= kMaxSeeds) {
      seeds.set_count(count);
      return seeds;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a number of seeds; expected 1 to ", kMaxSeeds,
                     ", a range such as 0..9, or a list such as 1,2,5"));
  }
  const std::vector<absl::string_view> items = absl::StrSplit(text, ',');
  std::set<uint32_t> seen;
  for (const absl::string_view item : items) {
    ASSIGN_OR_RETURN(const SeedRange range, ParseRange(item));
    if (range.last - range.first >= kMaxSeeds - seen.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" has too many seeds; expected at most ", kMaxSeeds));
    }
    for (uint64_t seed = range.first; seed <= range.last; ++seed) {
      if (!seen.insert(static_cast<uint32_t>(seed)).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(seed, " is given twice; expected different seeds"));
      }
      seeds.add_list(static_cast<uint32_t>(seed));
    }
  }
  if (items.size() > 1) return seeds;
  v1::Seeds range;
  range.set_first(seeds.list(0));
  range.set_count(static_cast<uint32_t>(seeds.list_size()));
  return range;
}

}  // namespace ablate::yaml
