#include "base/tokenizer/word_splitter.h"

#include <algorithm>

#include "base/utf8.h"

namespace ablate::tokenizer {
namespace {

constexpr size_t kMaxCharacterBytes = 4;

bool IsLineEnd(char byte) { return byte == '\r' || byte == '\n'; }

// Returns the length of the contraction at the beginning of `text`, which is a quotation mark; 0 if
// there is none; WordSplitter::kNeedsMore if that depends on text that will follow. In any case of
// letters, U+017F counts as s.
size_t ContractionLength(absl::string_view text, bool any_case, bool is_last) {
  const size_t unknown = is_last ? 0 : WordSplitter::kNeedsMore;
  const auto at = [&](size_t i) {
    return any_case && text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] | 0x20)
                                                        : text[i];
  };
  if (text.size() < 2) return unknown;
  char next = 0;
  switch (at(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      next = 'e';
      break;
    case 'l':
      next = 'l';
      break;
    case '\xC5':  // the first byte of U+017F
      if (!any_case) return 0;
      next = '\xBF';
      break;
    default:
      return 0;
  }
  if (text.size() < 3) return unknown;
  return at(2) == next ? 3 : 0;
}

}  // namespace

inline WordSplitter::Character WordSplitter::At(absl::string_view text, size_t offset,
                                                bool is_last) const {
  const unsigned char first = static_cast<unsigned char>(text[offset]);
  if (first < 0x80) return {classes_.Of(first), 1};
  size_t end = offset;
  const char32_t code_point = text::DecodeUtf8(text, end);
  if (code_point != text::kNotUtf8) return {classes_.Of(code_point), end - offset};
  const bool may_be_cut = !is_last && text.size() - offset < kMaxCharacterBytes;
  return {CharacterClass::kOther, may_be_cut ? size_t{0} : size_t{1}};
}

inline bool WordSplitter::Joins(char first, CharacterClass first_kind, CharacterClass kind) const {
  if (first == ' ') {
    return kind == CharacterClass::kLetter || kind == CharacterClass::kOther ||
           (kind == CharacterClass::kNumber && pattern_.space_before_numbers);
  }
  return pattern_.any_before_letters && kind == CharacterClass::kLetter &&
         (first_kind == CharacterClass::kOther || first_kind == CharacterClass::kSpace) &&
         !IsLineEnd(first);
}

size_t WordSplitter::EndOfNumbers(absl::string_view text, size_t at, bool is_last) const {
  for (size_t count = 0; count < pattern_.max_numbers; ++count) {
    if (at == text.size()) return is_last ? at : kNeedsMore;
    const Character here = At(text, at, is_last);
    if (here.bytes == 0) return kNeedsMore;
    if (here.kind != CharacterClass::kNumber) return at;
    at += here.bytes;
  }
  return at;
}

size_t WordSplitter::EndOfLineEnds(absl::string_view text, size_t begin, size_t at, bool is_last,
                                   size_t* resume) {
  while (at < text.size() && IsLineEnd(text[at]) && at - begin < kMaxWordBytes) ++at;
  if (at < text.size() || is_last) return at;
  *resume = at - 1;
  return kNeedsMore;
}

size_t WordSplitter::EndOfWord(absl::string_view text, size_t begin, bool is_last,
                               size_t* resume) const {
  if (text[begin] == '\'') {
    const size_t length = ContractionLength(text.substr(begin), pattern_.any_case, is_last);
    if (length == kNeedsMore) return kNeedsMore;
    if (length > 0) return begin + length;
  }
  size_t at = begin;  // a character of the run of one class that the word is, or ends with
  Character here = At(text, at, is_last);
  if (here.bytes == 0) return kNeedsMore;
  if ((text[begin] == ' ' || pattern_.any_before_letters) && begin + here.bytes < text.size()) {
    const Character second = At(text, begin + here.bytes, is_last);
    if (second.bytes == 0) return kNeedsMore;
    if (Joins(text[begin], here.kind, second.kind)) {
      at = begin + here.bytes;
      here = second;
    }
  }
  const CharacterClass kind = here.kind;
  if (kind == CharacterClass::kNumber && pattern_.max_numbers > 0) {
    return EndOfNumbers(text, at, is_last);
  }
  if (*resume > at) {
    at = *resume;
    here = At(text, at, is_last);
    if (here.kind != kind) return EndOfLineEnds(text, begin, at, is_last, resume);
  }
  size_t next = at + here.bytes;
  while (true) {
    if (next - begin > kMaxWordBytes) return at;
    if (next == text.size() && is_last) break;
    const Character after = next == text.size() ? Character{kind, 0} : At(text, next, is_last);
    if (after.bytes == 0) {
      *resume = at;
      return kNeedsMore;
    }
    if (after.kind != kind) break;
    at = next;
    next += after.bytes;
  }
  if (kind == CharacterClass::kOther && pattern_.line_ends_after_others) {
    return EndOfLineEnds(text, begin, next, is_last, resume);
  }
  if (kind != CharacterClass::kSpace) return next;
  if (pattern_.line_ends_end_spaces) {
    const size_t line_end = text.substr(begin, next - begin).find_last_of("\r\n");
    if (line_end != absl::string_view::npos) return begin + line_end + 1;
  }
  // The last of several spaces is left to the next word.
  return next < text.size() && at > begin ? at : next;
}

}  // namespace ablate::tokenizer
