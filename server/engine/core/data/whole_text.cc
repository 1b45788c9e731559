#include "server/engine/core/data/whole_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/status_macros.h"
#include "base/tokenizer/tokenizer_files.h"
#include "server/engine/core/data/characters.h"

namespace ablate::engine {

uint64_t TokenizedText::bytes() const {
  return sizeof(*this) + tokens.capacity() * sizeof(uint32_t) +
         alphabet.capacity() * sizeof(char32_t);
}

uint32_t TokenizedText::vocabulary() const {
  return encoding != nullptr ? encoding->vocabulary() : static_cast<uint32_t>(alphabet.size());
}

bool TokenizedText::operator==(const TokenizedText& other) const {
  return alphabet == other.alphabet && vocabulary() == other.vocabulary() && tokens == other.tokens;
}

absl::StatusOr<TokenizedText> TokenizeText(absl::string_view text) {
  TokenizedText whole;
  whole.tokens.reserve(text.size());
  LineReader reader(text, 1);
  std::u32string line;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, reader.Next(line));
    if (!found) break;
    whole.tokens.insert(whole.tokens.end(), line.begin(), line.end());
  }
  if (whole.tokens.empty()) return absl::InvalidArgumentError("the text is empty");
  whole.alphabet = NumberCharacters(whole.tokens);
  // It lives long.
  whole.tokens.shrink_to_fit();
  return whole;
}

absl::StatusOr<std::shared_ptr<const tokenizer::BytePairEncoding>> ReadEncoding(
    const TokenizerFiles& files) {
  return tokenizer::ParseFiles(files);
}

absl::StatusOr<TokenizedText> ReadTokens(DatasetFile file) {
  ASSIGN_OR_RETURN(auto encoding, ReadEncoding(file.tokenizer));
  const uint32_t vocabulary = encoding->vocabulary();
  const auto wrong = std::find_if(file.tokens.begin(), file.tokens.end(),
                                  [vocabulary](uint32_t token) { return token >= vocabulary; });
  if (wrong != file.tokens.end()) {
    return absl::InvalidArgumentError(absl::StrCat("token ", wrong - file.tokens.begin(), " is ",
                                                   *wrong, "; expected an ID below ", vocabulary,
                                                   ", the size of the vocabulary"));
  }
  TokenizedText text;
  text.encoding = std::move(encoding);
  text.tokens = std::move(file.tokens);
  return text;
}

absl::StatusOr<TokenizedText> ReadText(absl::string_view bytes) {
  if (IsText(bytes)) return TokenizeText(bytes);
  ASSIGN_OR_RETURN(DatasetFile file, ReadDatasetFile(bytes));
  return ReadTokens(std::move(file));
}

}  // namespace ablate::engine
