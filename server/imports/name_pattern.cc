#include "server/imports/name_pattern.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"

namespace ablate::imports {
namespace {

constexpr size_t kMaxPatternBytes = 1'000;
constexpr size_t kMaxParts = 20;

absl::Status WrongPattern(absl::string_view text, absl::string_view complaint) {
  return lookup::InvalidField("names", absl::StrCat(reflect::Quoted(text), " ", complaint),
                              "a pattern such as {norm}-s{seed}");
}

}  // namespace

absl::StatusOr<NamePattern> NamePattern::Parse(absl::string_view text, absl::string_view seed) {
  NamePattern pattern;
  pattern.text_ = std::string(text);
  if (text.size() > kMaxPatternBytes) return WrongPattern(text, "is too long");
  absl::string_view rest = text;
  while (!rest.empty()) {
    Part part;
    if (absl::ConsumePrefix(&rest, "{")) {
      const size_t end = rest.find('}');
      if (end == 0 || end == absl::string_view::npos) return WrongPattern(text, "lacks a key or }");
      part.key = std::string(rest.substr(0, end));
      part.digits = part.key == seed;
      rest.remove_prefix(end + 1);
    } else {
      part.literal = std::string(rest.substr(0, rest.find('{')));
      rest.remove_prefix(part.literal.size());
    }
    const bool repeated = !part.key.empty() &&
                          std::any_of(pattern.parts_.begin(), pattern.parts_.end(),
                                      [&part](const Part& other) { return other.key == part.key; });
    if (repeated) return WrongPattern(text, "has a key twice");
    pattern.parts_.push_back(std::move(part));
  }
  if (pattern.parts_.empty() || pattern.parts_.size() > kMaxParts) {
    return WrongPattern(text, "has no part, or more than 20");
  }
  return pattern;
}

absl::StatusOr<std::map<std::string, std::string>> NamePattern::Match(
    absl::string_view name) const {
  // ways[part][i] is the number of ways, at most 2, in which the parts from `part` on match the
  // name from character i on.
  const size_t length = name.size();
  std::vector<std::vector<int>> ways(parts_.size() + 1, std::vector<int>(length + 1));
  ways.back()[length] = 1;
  const auto fits = [&name](const Part& part, size_t i) {
    return part.digits ? absl::ascii_isdigit(name[i]) : name[i] != '/';
  };
  for (size_t part = parts_.size(); part-- > 0;) {
    const Part& own = parts_[part];
    for (size_t i = length; i-- > 0;) {
      if (own.key.empty()) {
        const bool here = absl::StartsWith(name.substr(i), own.literal);
        ways[part][i] = here ? ways[part + 1][i + own.literal.size()] : 0;
      } else if (fits(own, i)) {
        // The value ends after this character, or goes on.
        ways[part][i] = std::min(2, ways[part + 1][i + 1] + ways[part][i + 1]);
      }
    }
  }
  if (ways[0][0] != 1) {
    const bool none = ways[0][0] == 0;
    return WrongPattern(text_, absl::StrCat(none ? "doesn't match " : "matches ",
                                            reflect::Quoted(name), none ? "" : " in several ways"));
  }
  std::map<std::string, std::string> values;
  size_t i = 0;
  for (size_t part = 0; part < parts_.size(); ++part) {
    const size_t begin = i;
    i += std::max<size_t>(parts_[part].literal.size(), 1);
    if (parts_[part].key.empty()) continue;
    while (ways[part + 1][i] == 0) ++i;
    values[parts_[part].key] = std::string(name.substr(begin, i - begin));
  }
  return values;
}

}  // namespace ablate::imports
