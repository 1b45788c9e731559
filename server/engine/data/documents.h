// Reads a text as documents, one per line. Only this file defines a document.
#ifndef ABLATE_SERVER_ENGINE_DATA_DOCUMENTS_H_
#define ABLATE_SERVER_ENGINE_DATA_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/data/characters.h"
#include "server/engine/task.h"

namespace ablate::engine {

// Iterates over the non-empty lines of a text, which must outlive the reader.
class DocumentReader {
 public:
  explicit DocumentReader(absl::string_view text) : DocumentReader(text, 0) {}
  // `text` begins with a line, at byte `begins_at` of the whole text.
  DocumentReader(absl::string_view text, size_t begins_at) : lines_(text, begins_at) {}

  // Stores the code points of the next document in `document`. Returns false at the end. Errors as
  // LineReader::Next.
  absl::StatusOr<bool> Next(std::u32string& document);

 private:
  LineReader lines_;
};

// Holds all documents of a text as tokens.
struct TokenizedDocuments : TaskData {
  std::u32string alphabet;       // code point of each token id below `bos()`, ascending
  std::vector<uint32_t> tokens;  // of all documents, concatenated, without BOS
  std::vector<size_t> starts;    // [documents + 1], offsets into `tokens`

  uint32_t bos() const { return static_cast<uint32_t>(alphabet.size()); }
  size_t documents() const { return starts.size() - 1; }
  uint64_t bytes() const override;

  bool operator==(const TokenizedDocuments& other) const;
};

// Returns INVALID_ARGUMENT as LineReader::Next, and if there is no document.
absl::StatusOr<TokenizedDocuments> TokenizeDocuments(absl::string_view text);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_DOCUMENTS_H_
