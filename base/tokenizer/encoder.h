// Encodes text as ids, at once or in pieces.
#ifndef ABLATE_BASE_TOKENIZER_ENCODER_H_
#define ABLATE_BASE_TOKENIZER_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/tokenizer/byte_pair_encoding.h"
#include "base/tokenizer/special_finder.h"
#include "base/tokenizer/word_encoder.h"

namespace ablate::tokenizer {

// For one thread at a time; encoders share a BytePairEncoding. Each text, of any bytes, has ids,
// and Decode returns the same bytes, or their normal form if the encoding has one. Ids are those of
// the tokenizers package, except in words of more than WordSplitter::kMaxWordBytes, which are cut.
// An added token that isn't special is one id wherever it is in the text that was given.
class Encoder {
 public:
  // Takes special tokens in a text for ordinary text.
  explicit Encoder(std::shared_ptr<const BytePairEncoding> encoding);

  // Encodes each occurrence of one of the `special` tokens in a text as its id, and the text before
  // and after it separately; of several at a place the longest. See SpecialFinder::Make for errors.
  static absl::StatusOr<Encoder> WithSpecial(std::shared_ptr<const BytePairEncoding> encoding,
                                             const std::vector<std::string>& special);

  // Appends the ids of a whole text. Not between Add and Finish.
  void Encode(absl::string_view text, std::vector<uint32_t>* ids);
  // Appends the first of the ids that Encode would append, at most `most`. Reads little more of the
  // text than they need.
  void EncodeBeginning(absl::string_view text, size_t most, std::vector<uint32_t>* ids);

  // Appends the ids of a text that is given in pieces, cut at any bytes: Add for each piece, then
  // Finish, which makes the encoder ready for the next text. The ids are those of Encode. Text is
  // held back while its words depend on the next piece.
  void Add(absl::string_view piece, std::vector<uint32_t>* ids);
  void Finish(std::vector<uint32_t>* ids);

 private:
  Encoder(std::shared_ptr<const BytePairEncoding> encoding, SpecialFinder special);

  // Appends ids of `text` as far as they are certain; returns the length of that part. The places
  // found so far are remembered for the rest, with which the next call must begin.
  size_t EncodeCertain(absl::string_view text, bool is_last, std::vector<uint32_t>* ids);
  // Does the same for text without special tokens; `*resume` as in WordSplitter, in normal_ if the
  // encoding normalizes text.
  size_t EncodeSegment(absl::string_view text, bool is_last, size_t* resume,
                       std::vector<uint32_t>* ids);
  // Does the same for normal text.
  size_t EncodeWords(absl::string_view text, bool is_last, size_t* resume,
                     std::vector<uint32_t>* ids);

  WordEncoder words_;
  SpecialFinder special_;
  std::string held_;     // the text that isn't encoded yet
  std::string normal_;   // normal text before held_ that isn't encoded yet
  size_t resume_ = 0;    // in normal_ or held_: where its first word goes on
  size_t searched_ = 0;  // in held_: no special token begins before
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_ENCODER_H_
