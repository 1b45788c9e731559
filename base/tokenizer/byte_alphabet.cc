#include "base/tokenizer/byte_alphabet.h"

#include "base/utf8.h"

namespace ablate::tokenizer {
namespace {

constexpr char32_t kFirstMoved = 0x100;

// The bytes that stand for other characters than themselves, in ascending order: 0x00 to 0x20, 0x7F
// to 0xA0, and 0xAD.
constexpr unsigned kLowMoved = 0x21, kHighMovedFirst = 0x7F, kHighMoved = 0x22, kSoftHyphen = 0xAD;
constexpr unsigned kMoved = kLowMoved + kHighMoved + 1;

constexpr bool IsMoved(unsigned byte) {
  return byte < kLowMoved || (byte >= kHighMovedFirst && byte < kHighMovedFirst + kHighMoved) ||
         byte == kSoftHyphen;
}

}  // namespace

std::string NameOfByte(unsigned char byte) {
  if (!IsMoved(byte)) return text::EncodeUtf8(byte);
  if (byte < kLowMoved) return text::EncodeUtf8(kFirstMoved + byte);
  if (byte == kSoftHyphen) return text::EncodeUtf8(kFirstMoved + kMoved - 1);
  return text::EncodeUtf8(kFirstMoved + kLowMoved + byte - kHighMovedFirst);
}

std::optional<std::string> BytesOfName(absl::string_view name) {
  std::string bytes;
  for (size_t offset = 0; offset < name.size();) {
    const char32_t character = text::DecodeUtf8(name, offset);
    if (character < kFirstMoved && !IsMoved(character)) {
      bytes += static_cast<char>(character);
    } else if (character >= kFirstMoved && character < kFirstMoved + kMoved) {
      const unsigned rank = character - kFirstMoved;
      const unsigned byte = rank < kLowMoved    ? rank
                            : rank < kMoved - 1 ? rank - kLowMoved + kHighMovedFirst
                                                : kSoftHyphen;
      bytes += static_cast<char>(byte);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace ablate::tokenizer
