// Makes texts that tokenizers are compared on.
#ifndef ABLATE_TESTS_TOKENIZER_MIXED_TEXT_H_
#define ABLATE_TESTS_TOKENIZER_MIXED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace ablate::tokenizer {

// Returns well-formed UTF-8 of at least `bytes` bytes: prose with contractions, code, numbers,
// emoji, CJK, combining marks, control characters, white space of all kinds, code points from the
// whole range, and now and then a word of thousands of letters.
std::string MixedText(uint64_t seed, size_t bytes);

// Returns the same with bytes that are cut out, changed or put in.
std::string DamagedText(uint64_t seed, size_t bytes);

// Returns well-formed UTF-8 that normalization changes: characters that combine, in any order.
std::string CombiningText(uint64_t seed, size_t bytes);

// Returns all code points, each between characters of each class.
std::string EveryCodePoint();

}  // namespace ablate::tokenizer

#endif  // ABLATE_TESTS_TOKENIZER_MIXED_TEXT_H_
