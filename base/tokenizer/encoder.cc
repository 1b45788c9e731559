#include "base/tokenizer/encoder.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace ablate::tokenizer {

Encoder::Encoder(std::shared_ptr<const BytePairEncoding> encoding)
    : Encoder(encoding, SpecialFinder(*encoding)) {}

Encoder::Encoder(std::shared_ptr<const BytePairEncoding> encoding, SpecialFinder special)
    : words_(std::move(encoding)), special_(std::move(special)) {}

absl::StatusOr<Encoder> Encoder::WithSpecial(std::shared_ptr<const BytePairEncoding> encoding,
                                             const std::vector<std::string>& special) {
  ASSIGN_OR_RETURN(SpecialFinder finder, SpecialFinder::Make(*encoding, special));
  return Encoder(std::move(encoding), std::move(finder));
}

void Encoder::Encode(absl::string_view text, std::vector<uint32_t>* ids) {
  EncodeCertain(text, true, ids);
}

void Encoder::EncodeBeginning(absl::string_view text, size_t most, std::vector<uint32_t>* ids) {
  constexpr size_t kPiece = 16 << 10;
  const size_t end = ids->size() + most;
  while (!text.empty() && ids->size() < end) {
    Add(text.substr(0, kPiece), ids);
    text.remove_prefix(std::min(kPiece, text.size()));
  }
  Finish(ids);
  if (ids->size() > end) ids->resize(end);
}

void Encoder::Add(absl::string_view piece, std::vector<uint32_t>* ids) {
  held_.append(piece.data(), piece.size());
  held_.erase(0, EncodeCertain(held_, false, ids));
}

void Encoder::Finish(std::vector<uint32_t>* ids) {
  EncodeCertain(held_, true, ids);
  held_.clear();
}

size_t Encoder::EncodeCertain(absl::string_view text, bool is_last, std::vector<uint32_t>* ids) {
  size_t at = 0, resume = std::exchange(resume_, 0), searched = std::exchange(searched_, 0);
  while (true) {
    const SpecialFinder::Found found = special_.Find(text, searched, is_last);
    const bool ends = found.bytes > 0 || is_last;
    at += EncodeSegment(text.substr(at, found.begin - at), ends, &resume, ids);
    if (found.bytes == 0) {
      resume_ = resume;
      searched_ = std::max(found.begin, at) - at;
      return at;
    }
    ids->push_back(found.id);
    at = searched = found.begin + found.bytes;
  }
}

size_t Encoder::EncodeSegment(absl::string_view text, bool is_last, size_t* resume,
                              std::vector<uint32_t>* ids) {
  const Nfc* const nfc = words_.encoding().nfc();
  if (nfc == nullptr) return EncodeWords(text, is_last, resume, ids);
  const size_t read = nfc->Append(text, is_last, &normal_);
  normal_.erase(0, EncodeWords(normal_, is_last, resume, ids));
  return read;
}

size_t Encoder::EncodeWords(absl::string_view text, bool is_last, size_t* resume,
                            std::vector<uint32_t>* ids) {
  const WordSplitter& splitter = words_.encoding().splitter();
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = splitter.EndOfWord(text, at, is_last, resume);
    if (end == WordSplitter::kNeedsMore) break;
    words_.Encode(text.substr(at, end - at), ids);
    at = end;
    *resume = 0;
  }
  *resume -= std::min(*resume, at);
  return at;
}

}  // namespace ablate::tokenizer
