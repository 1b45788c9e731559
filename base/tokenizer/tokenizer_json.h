// Reads tokenizer.json, the file of Hugging Face's tokenizers: byte-level byte pair encodings such
// as those of GPT-NeoX, Llama 3 and Qwen2. docs/reference/tokenizers.md says which are supported.
#ifndef ABLATE_BASE_TOKENIZER_TOKENIZER_JSON_H_
#define ABLATE_BASE_TOKENIZER_TOKENIZER_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tokenizer/vocabulary.h"
#include "base/tokenizer/word_pattern.h"

namespace ablate::tokenizer {

inline constexpr size_t kMaxAddedTokens = 1024;

// An entry of `added_tokens`.
struct AddedToken {
  uint32_t id = 0;
  std::string text;  // itself, not in the byte alphabet
  bool is_special = false;
};

struct TokenizerJson {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  std::vector<AddedToken> added;  // at most kMaxAddedTokens, some of which are in the vocabulary
  WordPattern pattern;
  bool has_nfc = false;         // text is normalized to NFC
  bool ignores_merges = false;  // a word that is in the vocabulary is one token
};

// INVALID_ARGUMENT names the file, the field, its value and what is allowed.
absl::StatusOr<TokenizerJson> ParseTokenizerJson(const FileText& file);

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_TOKENIZER_JSON_H_
