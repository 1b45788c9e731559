#include "server/filter/scanner.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ablate::filter {
namespace {

constexpr absl::string_view kEndsWords = "()\"'=!<>,";
constexpr size_t kShownBytes = 40;  // of a token in a mistake

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

// Returns true for all bytes of a UTF-8 character but its first.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

struct Spelling {
  absl::string_view text;
  Operator op;
};
// Longer ones first.
constexpr Spelling kOperators[] = {
    {"!=", Operator::kNotEqual}, {"<=", Operator::kLessEqual}, {">=", Operator::kGreaterEqual},
    {"=", Operator::kEqual},     {"<", Operator::kLess},       {">", Operator::kGreater},
    {":", Operator::kHas}};

}  // namespace

absl::string_view NameOf(Operator op) {
  return std::find_if(std::begin(kOperators), std::end(kOperators),
                      [&](const Spelling& spelling) { return spelling.op == op; })
      ->text;
}

void Scanner::SkipSpaces() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
}

bool Scanner::AtEnd() {
  SkipSpaces();
  return at_ == text_.size();
}

size_t Scanner::Column() {
  SkipSpaces();
  const absl::string_view before = text_.substr(0, at_);
  return before.size() + 1 -
         static_cast<size_t>(std::count_if(before.begin(), before.end(), Continues));
}

absl::string_view Scanner::PeekWord(Place place) const {
  size_t end = at_;
  while (end < text_.size() && !IsSpace(text_[end]) && !absl::StrContains(kEndsWords, text_[end]) &&
         (text_[end] != ':' || place == Place::kValue)) {
    ++end;
  }
  return text_.substr(at_, end - at_);
}

bool Scanner::TakeKeyword(absl::string_view keyword) {
  SkipSpaces();
  if (!absl::EqualsIgnoreCase(PeekWord(Place::kName), keyword)) return false;
  at_ += keyword.size();
  return true;
}

bool Scanner::TakeCharacter(char character) {
  SkipSpaces();
  if (at_ == text_.size() || text_[at_] != character) return false;
  ++at_;
  return true;
}

std::optional<Operator> Scanner::TakeOperator() {
  SkipSpaces();
  for (const Spelling& spelling : kOperators) {
    if (!absl::StartsWith(text_.substr(at_), spelling.text)) continue;
    at_ += spelling.text.size();
    return spelling.op;
  }
  return std::nullopt;
}

std::optional<Token> Scanner::TakeString() {
  const char quote = text_[at_];
  Token token{"", true, Column()};
  for (size_t i = at_ + 1; i < text_.size(); ++i) {
    if (text_[i] == quote) {
      at_ = i + 1;
      return token;
    }
    // A backslash keeps the next character from ending the string.
    if (text_[i] == '\\' && i + 1 < text_.size()) ++i;
    token.text.push_back(text_[i]);
  }
  open_string_ = true;
  return std::nullopt;
}

std::optional<Token> Scanner::TakeText(Place place) {
  if (AtEnd()) return std::nullopt;
  if (text_[at_] == '"' || text_[at_] == '\'') return TakeString();
  const absl::string_view word = PeekWord(place);
  if (word.empty()) return std::nullopt;
  Token token{std::string(word), false, Column()};
  at_ += word.size();
  return token;
}

Mistake Scanner::Unexpected(absl::string_view isnt, absl::string_view expected) {
  const size_t column = Column();
  if (AtEnd()) return {column, "the text ends too early", std::string(expected)};
  absl::string_view next = PeekWord(Place::kName);
  if (next.empty()) next = text_.substr(at_, 1);
  size_t shown = std::min(next.size(), kShownBytes);
  while (shown < next.size() && Continues(next[shown])) ++shown;
  return {column, absl::StrCat("'", absl::Utf8SafeCHexEscape(next.substr(0, shown)), "' ", isnt),
          std::string(expected)};
}

}  // namespace ablate::filter
