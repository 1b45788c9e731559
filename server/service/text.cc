// Checks of short texts in requests.
#include "server/service/text.h"

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

}  // namespace ablate::service
