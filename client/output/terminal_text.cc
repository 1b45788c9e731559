#include "client/output/terminal_text.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace ablate::client {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Combining marks and other characters without a width of their own.
constexpr Range kZeroWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD},  {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x06D6, 0x06DC}, {0x0900, 0x0902},   {0x093C, 0x093C},  {0x0941, 0x0948}, {0x0E31, 0x0E31},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},   {0x1AB0, 0x1AFF},  {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x2060, 0x2064}, {0x20D0, 0x20FF},   {0x302A, 0x302D},  {0x3099, 0x309A}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF}};

constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26AA, 0x26AB},
    {0x26BD, 0x26BE},   {0x2705, 0x2705},   {0x274C, 0x274C},   {0x2753, 0x2757},
    {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},
    {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

// Marks that change the direction of the text after them, and separators that some terminals obey.
constexpr Range kDirection[] = {
    {0x061C, 0x061C}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFEFF, 0xFEFF}};

template <size_t N>
bool Contains(const Range (&ranges)[N], uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

bool IsSpace(uint32_t code) { return code == '\t' || code == '\n' || code == '\r'; }

int Width(uint32_t code) {
  if (code == 0 || Contains(kZeroWidth, code)) return 0;
  return Contains(kWide, code) ? 2 : 1;
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const text::Character c = text::FirstCharacter(text);
    if (c.valid && IsSpace(c.code)) {
      out += ' ';
    } else if (!c.valid || text::IsControl(c.code)) {
      absl::StrAppendFormat(&out, "\\x%02x", c.code);
    } else if (Contains(kDirection, c.code)) {
      absl::StrAppendFormat(&out, "\\u%04x", c.code);
    } else {
      out.append(text.data(), c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const text::Character c = text::FirstCharacter(text);
    width += c.valid ? Width(c.code) : 1;
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string Truncate(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::string out;
  int used = 0;
  while (!text.empty()) {
    const text::Character c = text::FirstCharacter(text);
    const int columns = c.valid ? Width(c.code) : 1;
    if (used + columns > width - 1) break;
    out.append(text.data(), c.bytes);
    used += columns;
    text.remove_prefix(c.bytes);
  }
  return width > 0 ? out + "…" : "";
}

}  // namespace ablate::client
