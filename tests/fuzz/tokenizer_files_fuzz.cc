// Fuzzes a tokenizer's files with libFuzzer: vocab.json, a zero byte, merges.txt. Each byte's token
// is in the vocabulary already if vocab.json begins with "+", so that few bytes make whole files.
// Input that begins with "*" is the members of a tokenizer.json, whose model has such a vocabulary.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/tokenizer/encoder.h"
#include "base/utf8.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::tokenizer {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Checks that tokens are what the files' reader promises, and that encoding loses nothing.
void CheckRead(const std::shared_ptr<const BytePairEncoding>& encoding, absl::string_view text) {
  Require(encoding->vocabulary() >= 256 && encoding->vocabulary() <= kMaxVocabulary);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const absl::string_view token =
        encoding->TextOf(encoding->TokenOf(static_cast<unsigned char>(byte)));
    Require(token == std::string(1, static_cast<char>(byte)));
  }
  for (const uint32_t id : encoding->special()) Require(!encoding->TextOf(id).empty());
  std::vector<uint32_t> ids;
  Encoder(encoding).Encode(text, &ids);
  const auto decoded = encoding->Decode(ids);
  if (encoding->nfc() == nullptr) {
    Require(decoded.ok() && *decoded == text);
  } else if (encoding->added().empty()) {
    Require(decoded.ok() && *decoded == encoding->nfc()->Of(text));
  }
}

void TryJson(absl::string_view members) {
  static const std::string model =
      absl::StrCat("{\"model\":{\"type\":\"BPE\",\"merges\":[\"a b\",[\"Ġ\",\"ab\"]],\"vocab\":",
                   SmallTokenizer{{"a b", "Ġ ab"}, {}}.VocabularyFile().text, "}");
  const auto parsed =
      BytePairEncoding::ParseJson({"tokenizer.json", absl::StrCat(model, members, "}")});
  if (parsed.ok()) return CheckRead(*parsed, members);
  const absl::string_view message = parsed.status().message();
  Require(text::IsUtf8(message) && message.size() < 1000);
  Require(absl::StartsWith(message, "tokenizer.json:"));
}

void Try(absl::string_view input) {
  if (absl::ConsumePrefix(&input, "*")) return TryJson(input);
  const size_t end = std::min(input.find('\0'), input.size());
  absl::string_view vocabulary = input.substr(0, end);
  const absl::string_view merges = input.substr(std::min(end + 1, input.size()));
  static const std::string bytes = SmallTokenizer().VocabularyFile().text;
  std::string text(vocabulary);
  if (absl::ConsumePrefix(&vocabulary, "+")) {
    text = absl::StrCat(bytes.substr(0, bytes.size() - 1), vocabulary);
  }
  const auto parsed =
      BytePairEncoding::Parse({"vocab.json", text}, {"merges.txt", std::string(merges)});
  if (parsed.ok()) return CheckRead(*parsed, input);
  const absl::string_view message = parsed.status().message();
  Require(text::IsUtf8(message) && message.size() < 500);
  Require(absl::StartsWith(message, "vocab.json:") || absl::StartsWith(message, "merges.txt:"));
}

}  // namespace
}  // namespace ablate::tokenizer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::tokenizer::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
