// Finds the words of a token sequence and replaces some by random letters. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_REPLACED_WORDS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_REPLACED_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/tokenizer/encoder.h"
#include "server/engine/core/analyses/sampling.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine {

// A word: a maximal run of bytes other than spaces, tabs and line ends in the text of tokens.
// Boundary tokens, such as <|endoftext|>, stand for no text and separate words.
struct TokenWord {
  size_t first = 0, end = 0;  // the tokens that have a byte of it
  // The tokens that a replacement replaces begin with `replaced`: a space of its own before the
  // word is encoded with it. `before` and `after` are their text outside the word: white space.
  size_t replaced = 0;
  std::string before, after;
};

struct SequenceWords {
  std::vector<TokenWord> words;  // in order
  // Words that share a token with another word. They are never replaced, and not in `words`.
  size_t left_out = 0;
};

// A row of a batch in which words were replaced.
struct ReplacedRow {
  // A target in a word that stays: the position in the row that predicts it, and the position that
  // predicted it in the row as it was.
  struct Stayed {
    int64_t position = 0;
    int64_t original = 0;
  };
  TokenBatch row;              // one row
  std::vector<Stayed> stayed;  // of words that are wholly inside the row, in order
};

// Returns ⌊fraction · words⌋, but at least one if the fraction is above 0 and there is a word.
// Rounding errors of the product don't matter.
size_t ReplacedCount(double fraction, size_t words);

// Replaces words in rows. Not thread-safe.
class WordReplacer {
 public:
  // Letters are a to z, those of them that an alphabet has, or, if it has none, its characters
  // other than white space. The alphabet must outlive it; rows have at most `context` tokens.
  WordReplacer(TextCodec codec, int64_t context);

  // Returns the words of a row: of its tokens and its last target.
  SequenceWords WordsOf(const TokenBatch& row) const;

  // Replaces a fraction of the words of a row by three letters each. The first words of the order
  // that `seed` draws are replaced, so that those of a small fraction are among those of a larger
  // one. Tokens of other words stay as they are. The row is cut to the context.
  ReplacedRow Replace(const TokenBatch& row, double fraction, uint64_t seed);

  // Returns a bound of the tokens of such a row, whatever the seed.
  size_t MostTokens(const TokenBatch& row, double fraction) const;

 private:
  SequenceWords FindWords(absl::Span<const uint32_t> tokens) const;
  bool IsBoundary(uint32_t token) const;
  void AddWordsOf(absl::Span<const uint32_t> tokens, size_t first, SequenceWords* found) const;
  void Encode(absl::string_view text, std::vector<uint32_t>* tokens);

  const TextCodec codec_;
  const size_t context_;
  std::optional<tokenizer::Encoder> encoder_;  // if the codec has an encoding
  std::vector<std::string> letters_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_REPLACED_WORDS_H_
