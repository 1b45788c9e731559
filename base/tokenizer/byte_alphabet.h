// Converts between the bytes of a token and its name in the files of a tokenizer.
#ifndef ABLATE_BASE_TOKENIZER_BYTE_ALPHABET_H_
#define ABLATE_BASE_TOKENIZER_BYTE_ALPHABET_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::tokenizer {

// Returns the character, in UTF-8, that stands for a byte in GPT-2's files: printable characters of
// Latin-1 for themselves, U+0100 and following for the other bytes in ascending order.
std::string NameOfByte(unsigned char byte);

// Returns the bytes for which the characters of `name` stand. Returns nothing if a character stands
// for no byte.
std::optional<std::string> BytesOfName(absl::string_view name);

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_BYTE_ALPHABET_H_
