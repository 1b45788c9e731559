// Finds special tokens in a text.
#ifndef ABLATE_BASE_TOKENIZER_SPECIAL_FINDER_H_
#define ABLATE_BASE_TOKENIZER_SPECIAL_FINDER_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/tokenizer/byte_pair_encoding.h"

namespace ablate::tokenizer {

class SpecialFinder {
 public:
  static constexpr size_t kMaxTokens = 256;

  // Finds the added tokens of an encoding, which aren't special.
  explicit SpecialFinder(const BytePairEncoding& encoding);

  // Finds the special tokens of these names, too. INVALID_ARGUMENT for a name that isn't a special
  // token of `encoding`, or that stands for other bytes than its own, and for too many names.
  static absl::StatusOr<SpecialFinder> Make(const BytePairEncoding& encoding,
                                            const std::vector<std::string>& names);

  // A token in a text. If there is none, `bytes` is 0, and no token begins before `begin`.
  struct Found {
    size_t begin = 0, bytes = 0;
    uint32_t id = 0;
  };

  // Returns the first token that begins at `from` or later, the longest of several. If `is_last` is
  // false, more text will follow, and the result is the same as with that text.
  Found Find(absl::string_view text, size_t from, bool is_last) const;

 private:
  void Add(absl::string_view text, uint32_t id);
  void Sort();

  std::vector<std::pair<std::string, uint32_t>> tokens_;  // texts and ids, longest first
  std::bitset<256> first_bytes_;
  std::bitset<256> second_bytes_;  // all if a token has one byte
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_SPECIAL_FINDER_H_
