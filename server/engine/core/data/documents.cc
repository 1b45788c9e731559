#include "server/engine/core/data/documents.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/status_macros.h"
#include "base/tokenizer/encoder.h"
#include "server/engine/core/data/whole_text.h"

namespace ablate::engine {
namespace {

constexpr absl::string_view kEndOfText = "<|endoftext|>";

// Reads the documents of a text. `append` appends the tokens of one.
template <typename Append>
absl::StatusOr<TokenizedDocuments> ReadLines(absl::string_view text, const Append& append) {
  TokenizedDocuments documents;
  documents.tokens.reserve(text.size());
  documents.starts.push_back(0);
  DocumentReader reader(text);
  std::u32string document;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, reader.Next(document));
    if (!found) break;
    append(document, &documents.tokens);
    documents.starts.push_back(documents.tokens.size());
  }
  if (documents.documents() == 0) {
    return absl::InvalidArgumentError("the text has no document (a non-empty line)");
  }
  // They live long, and unused capacity may double their memory.
  documents.tokens.shrink_to_fit();
  documents.starts.shrink_to_fit();
  return documents;
}

}  // namespace

absl::StatusOr<bool> DocumentReader::Next(std::u32string& document) {
  while (true) {
    const absl::StatusOr<bool> found = lines_.Next(document);
    if (!found.ok() || !*found) return found;
    if (!document.empty() && document.back() == '\n') document.pop_back();
    if (!document.empty()) return true;
  }
}

uint64_t TokenizedDocuments::bytes() const {
  return sizeof(*this) + tokens.capacity() * sizeof(uint32_t) + starts.capacity() * sizeof(size_t) +
         alphabet.capacity() * sizeof(char32_t);
}

uint32_t TokenizedDocuments::vocabulary() const {
  return std::max(bos() + 1, encoding != nullptr ? encoding->vocabulary() : 0);
}

bool TokenizedDocuments::operator==(const TokenizedDocuments& other) const {
  return alphabet == other.alphabet && vocabulary() == other.vocabulary() && bos() == other.bos() &&
         tokens == other.tokens && starts == other.starts;
}

absl::StatusOr<TokenizedDocuments> TokenizeDocuments(absl::string_view text) {
  auto documents =
      ReadLines(text, [](const std::u32string& document, std::vector<uint32_t>* tokens) {
        tokens->insert(tokens->end(), document.begin(), document.end());
      });
  if (documents.ok()) documents->alphabet = NumberCharacters(documents->tokens);
  return documents;
}

uint32_t BoundaryOf(const tokenizer::BytePairEncoding& encoding) {
  for (const uint32_t id : encoding.special()) {
    if (encoding.TextOf(id) == kEndOfText) return id;
  }
  return encoding.vocabulary();
}

absl::StatusOr<TokenizedDocuments> EncodeDocuments(
    absl::string_view text, std::shared_ptr<const tokenizer::BytePairEncoding> encoding) {
  tokenizer::Encoder encoder(encoding);
  auto documents =
      ReadLines(text, [&encoder](const std::u32string& document, std::vector<uint32_t>* tokens) {
        encoder.Encode(Utf8Of(document), tokens);
      });
  if (!documents.ok()) return documents;
  documents->boundary = BoundaryOf(*encoding);
  documents->encoding = std::move(encoding);
  return documents;
}

absl::StatusOr<TokenizedDocuments> ReadDocuments(absl::string_view bytes) {
  if (IsText(bytes)) return TokenizeDocuments(bytes);
  ASSIGN_OR_RETURN(DatasetFile file, ReadDatasetFile(bytes));
  if (file.lengths.empty()) {
    return absl::InvalidArgumentError("it has no documents; expected the lengths of its documents");
  }
  TokenizedDocuments documents;
  documents.starts.reserve(file.lengths.size() + 1);
  documents.starts.push_back(0);
  for (const uint32_t length : file.lengths) {
    documents.starts.push_back(documents.starts.back() + length);
  }
  ASSIGN_OR_RETURN(TokenizedText text, ReadTokens(std::move(file)));
  documents.boundary = BoundaryOf(*text.encoding);
  documents.encoding = std::move(text.encoding);
  documents.tokens = std::move(text.tokens);
  const auto& tokens = documents.tokens;
  const auto inside = std::find(tokens.begin(), tokens.end(), documents.boundary);
  if (inside != tokens.end()) {
    return absl::InvalidArgumentError(absl::StrCat("token ", inside - tokens.begin(), " is ",
                                                   documents.boundary,
                                                   ", which ends each document; expected documents "
                                                   "without it"));
  }
  return documents;
}

}  // namespace ablate::engine
