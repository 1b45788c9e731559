// Makes small tokenizers: a token per byte, the tokens of a few merges, special tokens.
#ifndef ABLATE_TESTS_TOKENIZER_SMALL_TOKENIZER_H_
#define ABLATE_TESTS_TOKENIZER_SMALL_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "base/tokenizer/byte_pair_encoding.h"

namespace ablate::tokenizer {

// The id of a byte's token is the byte; the results of merges and the special tokens follow.
struct SmallTokenizer {
  std::vector<std::string> merges;  // such as "a b"
  std::vector<std::string> special;

  FileText VocabularyFile() const;
  FileText MergesFile() const;
  // Returns a tokenizer.json with Qwen2's pattern and NFC, in which the special tokens are added.
  FileText JsonFile() const;
  std::shared_ptr<const BytePairEncoding> Make() const;
};

// Returns `count` merges of random tokens of the letters a to c and the space, in random order: a
// later merge may make the parts of an earlier one, or the same token again.
std::vector<std::string> RandomMerges(unsigned seed, size_t count);

}  // namespace ablate::tokenizer

#endif  // ABLATE_TESTS_TOKENIZER_SMALL_TOKENIZER_H_
