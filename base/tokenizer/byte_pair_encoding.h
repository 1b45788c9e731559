// Holds a byte-level byte pair encoding: the tokens and the merges. encoder.h encodes text.
#ifndef ABLATE_BASE_TOKENIZER_BYTE_PAIR_ENCODING_H_
#define ABLATE_BASE_TOKENIZER_BYTE_PAIR_ENCODING_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/tokenizer/nfc.h"
#include "base/tokenizer/tokenizer_json.h"
#include "base/tokenizer/vocabulary.h"
#include "base/tokenizer/word_splitter.h"

namespace ablate::tokenizer {

// Immutable, so that threads can share one.
class BytePairEncoding {
 public:
  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

  // Reads vocab.json and merges.txt. An error names the file, the line or the entry, and the
  // problem: see ParseVocabulary and ParseMerges; each of the 256 bytes must be a token, too.
  static absl::StatusOr<std::shared_ptr<const BytePairEncoding>> Read(
      const std::string& vocab_json, const std::string& merges_txt);
  // The same for files that were read.
  static absl::StatusOr<std::shared_ptr<const BytePairEncoding>> Parse(const FileText& vocab_json,
                                                                       const FileText& merges_txt);
  // The same for a tokenizer.json, see ParseTokenizerJson.
  static absl::StatusOr<std::shared_ptr<const BytePairEncoding>> ParseJson(const FileText& file);

  // Returns the largest id plus 1. Ids below it may lack a token.
  uint32_t vocabulary() const { return static_cast<uint32_t>(ends_.size()); }

  // Returns the bytes of a token, which may be a part of a character; empty if `id` has no token.
  // They are those for which the characters of its name stand. A name with a character that stands
  // for no byte, such as a space, is the token's text itself.
  absl::string_view TextOf(uint32_t id) const;

  // Returns the bytes of all tokens. INVALID_ARGUMENT names an id without token and its position.
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids) const;

  // Returns the special tokens, such as <|endoftext|>, in ascending order: those that no merge
  // makes and that aren't single bytes; of a tokenizer.json, the added tokens that are special.
  absl::Span<const uint32_t> special() const { return special_; }
  // Returns the other added tokens of a tokenizer.json: each occurrence in a text is one id.
  absl::Span<const uint32_t> added() const { return added_; }

  // Returns the normalization of text; null if text is encoded as it is.
  const Nfc* nfc() const { return nfc_.has_value() ? &*nfc_ : nullptr; }

  // For encoders: the token of a byte; the token that a whole word is without merges, kNoRank if
  // there is none; the rank of the merge of two neighbours, kNoRank if there is none, and the token
  // that the merge of a rank makes. Merges with lower ranks come first. The splitter finds the
  // words to merge within.
  uint32_t TokenOf(unsigned char byte) const { return tokens_of_bytes_[byte]; }
  uint32_t RankOf(uint32_t left, uint32_t right) const {
    const auto found = ranks_.find(PairKey(left, right));
    return found == ranks_.end() ? kNoRank : found->second;
  }
  uint32_t TokenOfWord(absl::string_view word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? kNoRank : found->second;
  }
  bool has_words() const { return !words_.empty(); }
  uint32_t ResultOf(uint32_t rank) const { return results_[rank]; }
  const WordSplitter& splitter() const { return splitter_; }

 private:
  BytePairEncoding() = default;
  static uint64_t PairKey(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  void SetTexts(const Vocabulary& vocabulary, const std::vector<AddedToken>& added);
  absl::Status SetBytes(const Vocabulary& vocabulary, const std::string& file);
  void SetMerges(const std::vector<Merge>& merges);
  void FindSpecial();
  void SetAdded(const std::vector<AddedToken>& added);
  void SetWords(const Vocabulary& vocabulary);

  std::string texts_;           // of all tokens, by ascending id
  std::vector<uint32_t> ends_;  // of each id in texts_
  std::array<uint32_t, 256> tokens_of_bytes_{};
  absl::flat_hash_map<uint64_t, uint32_t> ranks_;           // by PairKey
  std::vector<uint32_t> results_;                           // by rank
  absl::flat_hash_map<absl::string_view, uint32_t> words_;  // in texts_; of ignore_merges
  std::vector<uint32_t> special_, added_;
  std::optional<Nfc> nfc_;
  WordSplitter splitter_;
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_BYTE_PAIR_ENCODING_H_
