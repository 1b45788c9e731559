// Text that strangers send: whether it may be shown, and how it is shown in messages.
#include "server/service/text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace ablate::service {
namespace {

struct Form {  // of a character that takes `bytes` bytes
  unsigned char mask, lead;
  size_t bytes;
  uint32_t least;  // smaller code points have a shorter form
};
constexpr Form kForms[] = {
    {0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};

bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x20 || first == 0x7F) return true;
  // U+0080 to U+009F.
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

size_t CharacterBytes(absl::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  for (const Form& form : kForms) {
    if ((first & form.mask) != form.lead) continue;
    if (text.size() < form.bytes) return 0;
    uint32_t point = first & static_cast<unsigned char>(~form.mask);
    for (size_t i = 1; i < form.bytes; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xC0) != 0x80) return 0;
      point = point << 6 | (next & 0x3Fu);
    }
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    return point < form.least || point > 0x10FFFF || surrogate ? 0 : form.bytes;
  }
  return 0;
}

std::string Quoted(absl::string_view value, size_t limit) {
  std::string quoted = "\"";
  while (!value.empty()) {
    if (quoted.size() > limit) return absl::StrCat(quoted, "\"…");
    const size_t bytes = CharacterBytes(value);
    const absl::string_view character = value.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0 || IsControl(character) || character == "\"") {
      for (const char c : character) {
        absl::StrAppend(&quoted, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
      }
    } else {
      absl::StrAppend(&quoted, character);
    }
    value.remove_prefix(character.size());
  }
  return absl::StrCat(quoted, "\"");
}

std::string Beginning(absl::string_view text, size_t limit) {
  size_t end = std::min(text.size(), limit);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return std::string(text.substr(0, end));
}

bool IsPrintable(absl::string_view text, size_t most_characters) {
  if (text.empty()) return false;
  size_t characters = 0;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0 || IsControl(text) || ++characters > most_characters) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace ablate::service
