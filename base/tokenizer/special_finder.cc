#include "base/tokenizer/special_finder.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ablate::tokenizer {
namespace {

constexpr size_t kMaxListed = 8;

// Returns the special tokens of an encoding for an error.
std::string ListSpecial(const BytePairEncoding& encoding) {
  std::vector<std::string> names;
  for (const uint32_t id : encoding.special()) {
    if (names.size() == kMaxListed) break;
    names.push_back(Quoted(encoding.TextOf(id)));
  }
  if (names.empty()) return "none, because this vocabulary has no special tokens";
  const bool more = encoding.special().size() > names.size();
  return absl::StrCat("one of ", absl::StrJoin(names, ", "), more ? ", …" : "");
}

}  // namespace

SpecialFinder::SpecialFinder(const BytePairEncoding& encoding) {
  for (const uint32_t id : encoding.added()) Add(encoding.TextOf(id), id);
  Sort();
}

void SpecialFinder::Add(absl::string_view text, uint32_t id) {
  tokens_.emplace_back(text, id);
  first_bytes_.set(static_cast<unsigned char>(text[0]));
  if (text.size() == 1) {
    second_bytes_.set();
  } else {
    second_bytes_.set(static_cast<unsigned char>(text[1]));
  }
}

void SpecialFinder::Sort() {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

absl::StatusOr<SpecialFinder> SpecialFinder::Make(const BytePairEncoding& encoding,
                                                  const std::vector<std::string>& names) {
  if (names.size() > kMaxTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.size(), " special tokens; expected at most ", kMaxTokens));
  }
  SpecialFinder finder(encoding);
  for (const std::string& name : names) {
    const auto is_name = [&](uint32_t id) { return encoding.TextOf(id) == name; };
    const auto found = std::find_if(encoding.special().begin(), encoding.special().end(), is_name);
    if (found == encoding.special().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(name), " isn't a special token; expected ", ListSpecial(encoding)));
    }
    finder.Add(name, *found);
  }
  finder.Sort();
  return finder;
}

SpecialFinder::Found SpecialFinder::Find(absl::string_view text, size_t from, bool is_last) const {
  for (size_t begin = tokens_.empty() ? text.size() : from; begin < text.size(); ++begin) {
    if (!first_bytes_[static_cast<unsigned char>(text[begin])]) continue;
    const bool has_second = begin + 1 < text.size();
    if (has_second && !second_bytes_[static_cast<unsigned char>(text[begin + 1])]) continue;
    const absl::string_view rest = text.substr(begin);
    for (const auto& [token, id] : tokens_) {
      if (absl::StartsWith(rest, token)) return {begin, token.size(), id};
      if (!is_last && absl::StartsWith(token, rest)) return {begin, 0, 0};
    }
  }
  return {text.size(), 0, 0};
}

}  // namespace ablate::tokenizer
