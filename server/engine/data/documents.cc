#include "server/engine/data/documents.h"

#include "absl/status/status.h"

namespace ablate::engine {

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

bool TokenizedDocuments::operator==(const TokenizedDocuments& other) const {
  return alphabet == other.alphabet && tokens == other.tokens && starts == other.starts;
}

absl::StatusOr<TokenizedDocuments> TokenizeDocuments(absl::string_view text) {
  TokenizedDocuments documents;
  documents.tokens.reserve(text.size());
  documents.starts.push_back(0);
  DocumentReader reader(text);
  std::u32string document;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(document);
    if (!found.ok()) return found.status();
    if (!*found) break;
    documents.tokens.insert(documents.tokens.end(), document.begin(), document.end());
    documents.starts.push_back(documents.tokens.size());
  }
  if (documents.documents() == 0) {
    return absl::InvalidArgumentError("the text has no document (a non-empty line)");
  }
  documents.alphabet = NumberCharacters(documents.tokens);
  // They live long, and unused capacity may double their memory.
  documents.tokens.shrink_to_fit();
  documents.starts.shrink_to_fit();
  return documents;
}

}  // namespace ablate::engine
