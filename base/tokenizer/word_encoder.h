// Encodes single words: merges pairs of neighbouring tokens, and remembers short words.
#ifndef ABLATE_BASE_TOKENIZER_WORD_ENCODER_H_
#define ABLATE_BASE_TOKENIZER_WORD_ENCODER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/tokenizer/byte_pair_encoding.h"

namespace ablate::tokenizer {

// For one thread at a time. Its cache has 2 MiB; encoding a word of n bytes takes O(n log n) time
// and at most 50 n bytes more, which are kept for later words.
class WordEncoder {
 public:
  explicit WordEncoder(std::shared_ptr<const BytePairEncoding> encoding);

  const BytePairEncoding& encoding() const { return *encoding_; }

  // Appends the ids of `word`, which isn't empty: begins with a token per byte and replaces the
  // pair whose merge has the lowest rank, the leftmost of several, until no merge is left. Appends
  // one id if the encoding ignores the merges of the word.
  void Encode(absl::string_view word, std::vector<uint32_t>* ids);

 private:
  // A word of up to 16 bytes and up to 11 ids. Each word has one slot, in which it replaces another
  // word.
  struct Slot {
    uint64_t head = 0, tail = 0;  // bytes of the word; they may overlap
    std::array<uint32_t, 11> ids{};
    uint8_t bytes = 0;  // 0: empty
    uint8_t count = 0;
  };
  // A token of the word that is being merged, at the place of its first byte.
  struct Node {
    uint32_t id;
    uint32_t previous, next;  // places of its neighbours
    uint32_t rank;            // of the pair with the next one
  };

  void MergeWord(absl::string_view word, std::vector<uint32_t>* ids);
  // Notes the rank of the pair at `place`, whose tokens have changed.
  void Rank(uint32_t place);

  std::shared_ptr<const BytePairEncoding> encoding_;
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank and place of pairs, the lowest first; some no longer exist
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_WORD_ENCODER_H_
