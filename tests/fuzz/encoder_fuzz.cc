// Fuzzes encoders with libFuzzer: a byte that chooses the sizes of pieces, then a text of any
// bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/tokenizer/encoder.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::tokenizer {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Checks that a text in pieces has the ids of the whole text, and that they decode to it or,
// without special tokens, to its normal form.
void CheckText(const BytePairEncoding& encoding, absl::string_view text, size_t longest,
               bool has_special, Encoder* encoder) {
  std::vector<uint32_t> whole, pieces;
  encoder->Encode(text, &whole);
  const auto decoded = encoding.Decode(whole);
  Require(decoded.ok());
  if (encoding.nfc() == nullptr) {
    Require(*decoded == text);
  } else if (!has_special) {
    Require(*decoded == encoding.nfc()->Of(text));
  }
  for (size_t at = 0, size = 1; at < text.size(); at += size, size = size % longest + 1) {
    encoder->Add(text.substr(at, size), &pieces);
  }
  encoder->Finish(&pieces);
  Require(pieces == whole);
}

struct Encoders {
  explicit Encoders(std::shared_ptr<const BytePairEncoding> made) : encoding(std::move(made)) {}

  std::shared_ptr<const BytePairEncoding> encoding;
  Encoder plain{encoding};
  Encoder special = *Encoder::WithSpecial(encoding, {"<e>", "<e>a", "<e><"});
};

const SmallTokenizer& Small() {
  static const SmallTokenizer small = {RandomMerges(1, 60), {"<e>", "<e>a", "<e><"}};
  return small;
}

void Try(absl::string_view input) {
  static Encoders gpt2(Small().Make());
  static Encoders qwen2(*BytePairEncoding::ParseJson(Small().JsonFile()));
  if (input.empty()) return;
  const size_t longest = size_t{1} + static_cast<unsigned char>(input[0]) % 16;
  for (Encoders* encoders : {&gpt2, &qwen2}) {
    CheckText(*encoders->encoding, input.substr(1), longest, false, &encoders->plain);
    CheckText(*encoders->encoding, input.substr(1), longest, true, &encoders->special);
  }
}

}  // namespace
}  // namespace ablate::tokenizer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::tokenizer::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
