#include "server/engine/data/whole_text.h"

#include "absl/status/status.h"
#include "server/engine/data/characters.h"

namespace ablate::engine {

uint64_t TokenizedText::bytes() const {
  return sizeof(*this) + tokens.capacity() * sizeof(uint32_t) +
         alphabet.capacity() * sizeof(char32_t);
}

bool TokenizedText::operator==(const TokenizedText& other) const {
  return alphabet == other.alphabet && tokens == other.tokens;
}

absl::StatusOr<TokenizedText> TokenizeText(absl::string_view text) {
  TokenizedText whole;
  whole.tokens.reserve(text.size());
  LineReader reader(text, 0);
  std::u32string line;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(line);
    if (!found.ok()) return found.status();
    if (!*found) break;
    whole.tokens.insert(whole.tokens.end(), line.begin(), line.end());
  }
  if (whole.tokens.empty()) return absl::InvalidArgumentError("the text is empty");
  whole.alphabet = NumberCharacters(whole.tokens);
  // It lives long.
  whole.tokens.shrink_to_fit();
  return whole;
}

}  // namespace ablate::engine
