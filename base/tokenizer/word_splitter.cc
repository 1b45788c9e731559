#include "base/tokenizer/word_splitter.h"

#include <algorithm>

#include "base/utf8.h"

namespace ablate::tokenizer {
namespace {

constexpr size_t kMaxCharacterBytes = 4;

// Returns the length of the contraction at the beginning of `text`, which is a quotation mark; 0 if
// there is none; WordSplitter::kNeedsMore if that depends on text that will follow.
size_t ContractionLength(absl::string_view text, bool is_last) {
  const size_t unknown = is_last ? 0 : WordSplitter::kNeedsMore;
  if (text.size() < 2) return unknown;
  char next = 0;
  switch (text[1]) {
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
    default:
      return 0;
  }
  if (text.size() < 3) return unknown;
  return text[2] == next ? 3 : 0;
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

size_t WordSplitter::EndOfWord(absl::string_view text, size_t begin, bool is_last,
                               size_t* resume) const {
  if (text[begin] == '\'') {
    const size_t length = ContractionLength(text.substr(begin), is_last);
    if (length == kNeedsMore) return kNeedsMore;
    if (length > 0) return begin + length;
  }
  size_t at = begin;  // a character of the run of one class that the word is, or ends with
  Character here = At(text, at, is_last);
  if (here.bytes == 0) return kNeedsMore;
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const Character second = At(text, begin + 1, is_last);
    if (second.bytes == 0) return kNeedsMore;
    if (second.kind != CharacterClass::kSpace) {
      at = begin + 1;
      here = second;
    }
  }
  if (*resume > at) {
    at = *resume;
    here = At(text, at, is_last);
  }
  while (true) {
    const size_t next = at + here.bytes;
    if (next - begin > kMaxWordBytes) return at;
    if (next == text.size() && is_last) return next;
    const Character after = next == text.size() ? Character{here.kind, 0} : At(text, next, is_last);
    if (after.bytes == 0) {
      *resume = at;
      return kNeedsMore;
    }
    if (after.kind != here.kind) {
      // The last of several spaces is left to the next word.
      return here.kind == CharacterClass::kSpace && at > begin ? at : next;
    }
    at = next;
    here = after;
  }
}

}  // namespace ablate::tokenizer
