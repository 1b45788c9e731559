#include "base/utf8.h"

#include <algorithm>

namespace ablate::text {
namespace {

// Sequences by their first byte: its range, the number of bytes that follow, and the range of the
// second byte, which excludes overlong forms, surrogates and too large values.
struct LeadRange {
  unsigned char first, last;
  unsigned char following;
  unsigned char second_first, second_last;
};

constexpr LeadRange kLeads[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF},
    {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF},
    {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

const LeadRange* FindLead(unsigned char byte) {
  for (const LeadRange& lead : kLeads) {
    if (byte >= lead.first && byte <= lead.last) return &lead;
  }
  return nullptr;
}

}  // namespace

char32_t DecodeUtf8(absl::string_view text, size_t& offset) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    ++offset;
    return first;
  }
  const LeadRange* lead = FindLead(first);
  if (lead == nullptr) return kNotUtf8;
  const size_t length = lead->following + size_t{1};
  if (text.size() - offset < length) return kNotUtf8;
  if (byte(1) < lead->second_first || byte(1) > lead->second_last) return kNotUtf8;
  char32_t point = first & (0x3Fu >> lead->following);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return kNotUtf8;
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  offset += length;
  return point;
}

absl::string_view WideEncoding(absl::string_view beginning) {
  const auto begins = [beginning](const char* mark, size_t bytes) {
    return beginning.substr(0, bytes) == absl::string_view(mark, bytes);
  };
  if (begins("\xFF\xFE\0\0", 4) || begins("\0\0\xFE\xFF", 4)) return "UTF-32";
  if (begins("\xFF\xFE", 2) || begins("\xFE\xFF", 2)) return "UTF-16";
  constexpr size_t kFewest = 4, kMost = 64;
  const size_t bytes = std::min(beginning.size() / 2 * 2, kMost);
  bool little = bytes >= kFewest, big = little;
  for (size_t i = 0; i < bytes; i += 2) {
    const bool first = beginning[i] == '\0', second = beginning[i + 1] == '\0';
    little &= !first && second;
    big &= first && !second;
  }
  return little ? "UTF-16LE" : big ? "UTF-16BE" : "";
}

Character FirstCharacter(absl::string_view text) {
  size_t bytes = 0;
  const char32_t code = DecodeUtf8(text, bytes);
  if (code == kNotUtf8) return {static_cast<unsigned char>(text[0]), 1, false};
  return {code, bytes, true};
}

std::string EncodeUtf8(char32_t code_point) {
  const auto tail = [code_point](int shift) {
    return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  const auto head = [code_point](int mark, int shift) {
    return static_cast<char>(mark | (code_point >> shift));
  };
  if (code_point < 0x80) return {head(0, 0)};
  if (code_point < 0x800) return {head(0xC0, 6), tail(0)};
  if (code_point < 0x10000) return {head(0xE0, 12), tail(6), tail(0)};
  return {head(0xF0, 18), tail(12), tail(6), tail(0)};
}

size_t CharacterLength(absl::string_view text) {
  size_t length = 0;
  if (!text.empty()) DecodeUtf8(text, length);
  return length;
}

size_t FindNotUtf8(absl::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    if (DecodeUtf8(text, offset) == kNotUtf8) return offset;
  }
  return absl::string_view::npos;
}

bool HasControlCharacter(absl::string_view text, absl::string_view except) {
  size_t offset = 0;
  while (offset < text.size()) {
    const char32_t code_point = DecodeUtf8(text, offset);
    if (code_point == kNotUtf8) {
      ++offset;
      continue;
    }
    const bool excepted =
        code_point < 0x80 && except.find(static_cast<char>(code_point)) != absl::string_view::npos;
    if (IsControl(code_point) && !excepted) return true;
  }
  return false;
}

bool IsPrintable(absl::string_view text, size_t max_characters) {
  if (text.empty()) return false;
  size_t offset = 0;
  for (size_t characters = 0; offset < text.size(); ++characters) {
    const char32_t code_point = DecodeUtf8(text, offset);
    if (characters == max_characters || code_point == kNotUtf8 || IsControl(code_point)) {
      return false;
    }
  }
  return true;
}

}  // namespace ablate::text
