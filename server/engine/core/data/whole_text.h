// Reads a text as a whole: a text, whose tokens are its characters, or stored tokens.
#ifndef ABLATE_SERVER_ENGINE_CORE_DATA_WHOLE_TEXT_H_
#define ABLATE_SERVER_ENGINE_CORE_DATA_WHOLE_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/dataset_file.h"
#include "base/tokenizer/byte_pair_encoding.h"
#include "server/engine/task.h"

namespace ablate::engine {

struct TokenizedText : TaskData {
  // Code point of each token id, ascending; a line end is a line feed. Empty if `encoding` is set.
  std::u32string alphabet;
  std::shared_ptr<const tokenizer::BytePairEncoding> encoding;  // of stored tokens
  std::vector<uint32_t> tokens;

  uint32_t vocabulary() const;

  uint64_t bytes() const override;

  bool operator==(const TokenizedText& other) const;
};

// Returns the characters of a text. Returns INVALID_ARGUMENT as LineReader::Next, and if the text
// is empty.
absl::StatusOr<TokenizedText> TokenizeText(absl::string_view text);

// Returns a tokenizer. INVALID_ARGUMENT names the file and its problem.
absl::StatusOr<std::shared_ptr<const tokenizer::BytePairEncoding>> ReadEncoding(
    const TokenizerFiles& files);

// Returns the tokens of a file, with their tokenizer; a tokenizer's file has none. INVALID_ARGUMENT
// names the problem of the tokenizer, or the first token that isn't in the vocabulary.
absl::StatusOr<TokenizedText> ReadTokens(DatasetFile file);

// Reads a data set by its kind: a text, or a file of tokens or of a tokenizer, which has none
// (base/dataset_file.h).
absl::StatusOr<TokenizedText> ReadText(absl::string_view bytes);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_DATA_WHOLE_TEXT_H_
