// Checks of short texts in requests.
#include "server/service/text.h"

#include <algorithm>

#include "proto/reflect/text.h"

namespace ablate::service {

bool IsPrintable(absl::string_view text, size_t most_characters) {
  if (text.empty() || reflect::HasControlCharacter(text)) return false;
  size_t characters = 0;
  while (!text.empty()) {
    const size_t bytes = reflect::CharacterLength(text);
    if (bytes == 0 || ++characters > most_characters) return false;
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
