#include "server/report/figure/token_labels.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/utf8.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {
namespace {

// Liberation Sans has these signs.
constexpr char kBoundary[] = "|", kSpace[] = "·", kLineFeed[] = "¶", kUnfit[] = "\uFFFD";
constexpr char kTab[] = "\\t";
constexpr double kMostLabel = 0.55;  // inches

// Returns the sign of a character that has one, such as \x1b of a control character; "" of others.
std::string SignOf(char32_t code) {
  if (code == U' ') return kSpace;
  if (code == U'\n') return kLineFeed;
  if (code == U'\t') return kTab;
  return text::IsControl(code) ? absl::StrFormat("\\x%02x", static_cast<uint32_t>(code)) : "";
}

bool HasOtherControl(absl::string_view text) {
  while (!text.empty()) {
    const char32_t code = text::TakeCharacter(&text);
    if (text::IsControl(code) && code != U'\n' && code != U'\t') return true;
  }
  return false;
}

// Returns true if U+FFFD stands for something else in the label.
bool HasUnfit(absl::string_view text) {
  while (!text.empty()) {
    const absl::string_view before = text;
    const char32_t code = text::TakeCharacter(&text);
    const absl::string_view character = before.substr(0, before.size() - text.size());
    if (character == kUnfit || text::IsControl(code)) continue;
    if (text::CleanText(character) == kUnfit) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> TokenTexts(const AnalyzedSeed& seed, size_t tokens) {
  const auto bytes = seed.beside.find(std::string(kTokenArrays[0]));
  const auto ends = seed.beside.find(std::string(kTokenArrays[1]));
  if (bytes == seed.beside.end() || ends == seed.beside.end()) return {};
  const auto most = static_cast<double>(bytes->second.size());
  if (ends->second.size() != tokens || ends->second.back() != most) return {};
  std::string all;
  for (const double byte : bytes->second) {
    if (!(byte >= 0 && byte < 256)) return {};
    all.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  }
  std::vector<std::string> texts;
  size_t begin = 0;
  for (const double end : ends->second) {
    if (!(end >= static_cast<double>(begin) && end <= most)) return {};
    texts.push_back(all.substr(begin, static_cast<size_t>(end) - begin));
    begin = static_cast<size_t>(end);
  }
  return texts;
}

std::vector<std::string> CharactersOf(absl::string_view prompt, size_t tokens) {
  std::vector<std::string> characters;
  while (!prompt.empty()) {
    const absl::string_view before = prompt;
    text::TakeCharacter(&prompt);
    characters.emplace_back(before.substr(0, before.size() - prompt.size()));
  }
  if (characters.empty()) return {};
  if (characters.size() + 1 == tokens) characters.insert(characters.begin(), "");
  return characters.size() == tokens ? characters : std::vector<std::string>();
}

std::string TokenLabel(absl::string_view text) {
  if (text.empty()) return kBoundary;
  std::string label;
  while (!text.empty()) {
    const absl::string_view before = text;
    const std::string sign = SignOf(text::TakeCharacter(&text));
    absl::StrAppend(&label, sign.empty() ? before.substr(0, before.size() - text.size()) : sign);
  }
  return ElideMiddle(label, kMostLabel, kLabelSize);  // cleans, too
}

std::string SignsText(const std::vector<std::string>& texts) {
  const auto any = [&](auto matches) { return std::any_of(texts.begin(), texts.end(), matches); };
  std::vector<std::string> signs;
  const auto add = [&signs](absl::string_view sign, absl::string_view meaning) {
    signs.push_back(absl::StrCat(sign, ": ", meaning));
  };
  if (any([](const std::string& text) { return text.empty(); }))
    add(kBoundary, "the boundary token");
  if (any([](const std::string& text) { return absl::StrContains(text, ' '); })) {
    add(kSpace, "a space");
  }
  if (any([](const std::string& text) { return absl::StrContains(text, '\n'); })) {
    add(kLineFeed, "a line feed");
  }
  if (any([](const std::string& text) { return absl::StrContains(text, '\t'); })) {
    add(kTab, "a tab");
  }
  if (any(HasOtherControl)) add("\\x", "a control character, by its code");
  if (any(HasUnfit)) add(kUnfit, "a part of a character, or one that can't be drawn");
  return absl::StrJoin(signs, ", ");
}

}  // namespace ablate::figure
