// Normalizes text to Unicode's form C (NFC) as version 0.23.3 of the Python package tokenizers
// does.
#ifndef ABLATE_BASE_TOKENIZER_NFC_H_
#define ABLATE_BASE_TOKENIZER_NFC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace ablate::tokenizer {

// Has Unicode 9.0's tables: later characters stay as they are. The version is fixed, because the
// ids of a text depend on it. A byte that isn't part of a well-formed UTF-8 sequence stays, too.
// Source: Unicode Standard Annex 15. Immutable.
class Nfc {
 public:
  Nfc();

  // Returns the normal form of a text.
  std::string Of(absl::string_view text) const;

  // Appends the normal form of the beginning of `text`, and returns its length in `text`. If
  // `is_last` is false, more text will follow, and the end that depends on it is left. A sequence
  // of combining characters of more than WordSplitter::kMaxWordBytes is cut there.
  size_t Append(absl::string_view text, bool is_last, std::string* out) const;

 private:
  uint8_t KindOf(char32_t point) const;
  uint8_t ClassOf(char32_t point) const;
  void Decompose(char32_t point, std::u32string* out) const;
  // Returns the character that two make; 0 if there is none.
  char32_t Composed(char32_t first, char32_t second) const;
  // Appends the normal form of a sequence that doesn't combine with its surroundings.
  void AppendSequence(absl::string_view sequence, std::string* out) const;

  // By character: kInert, kMayChange, or the canonical combining class.
  std::vector<uint8_t> kinds_;
  absl::flat_hash_map<char32_t, std::pair<char32_t, char32_t>> decompositions_;
  absl::flat_hash_map<std::pair<char32_t, char32_t>, char32_t> compositions_;
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_NFC_H_
