// Reads a text as documents, one per line. Only this file defines a document.
#ifndef ABLATE_SERVER_ENGINE_CORE_DATA_DOCUMENTS_H_
#define ABLATE_SERVER_ENGINE_CORE_DATA_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/tokenizer/byte_pair_encoding.h"
#include "server/engine/core/data/characters.h"
#include "server/engine/task.h"

namespace ablate::engine {

// Iterates over the non-empty lines of a text, which must outlive the reader.
class DocumentReader {
 public:
  explicit DocumentReader(absl::string_view text) : DocumentReader(text, 1) {}
  // `text` begins with a line, which has the number `first_line`, from 1, in the whole text.
  DocumentReader(absl::string_view text, size_t first_line) : lines_(text, first_line) {}

  // Stores the code points of the next document in `document`. Returns false at the end. Errors as
  // LineReader::Next.
  absl::StatusOr<bool> Next(std::u32string& document);

 private:
  LineReader lines_;
};

// Holds all documents of a text as tokens.
struct TokenizedDocuments : TaskData {
  // Code point of each token id below `bos()`, ascending. Empty if `encoding` is set.
  std::u32string alphabet;
  std::shared_ptr<const tokenizer::BytePairEncoding> encoding;
  uint32_t boundary = 0;         // BoundaryOf(encoding), if that is set
  std::vector<uint32_t> tokens;  // of all documents, concatenated, without BOS
  std::vector<size_t> starts;    // [documents + 1], offsets into `tokens`

  uint32_t bos() const {
    return encoding != nullptr ? boundary : static_cast<uint32_t>(alphabet.size());
  }
  uint32_t vocabulary() const;  // with BOS
  size_t documents() const { return starts.size() - 1; }
  uint64_t bytes() const override;

  bool operator==(const TokenizedDocuments& other) const;
};

// Returns INVALID_ARGUMENT as LineReader::Next, and if there is no document.
absl::StatusOr<TokenizedDocuments> TokenizeDocuments(absl::string_view text);

// Returns the token that opens and closes the documents of a tokenizer: its <|endoftext|>, or one
// more than its ids.
uint32_t BoundaryOf(const tokenizer::BytePairEncoding& encoding);

// Encodes each document of a text by itself, as its bytes in UTF-8. Errors as TokenizeDocuments.
absl::StatusOr<TokenizedDocuments> EncodeDocuments(
    absl::string_view text, std::shared_ptr<const tokenizer::BytePairEncoding> encoding);

// Reads a data set by its kind: a text, whose characters are the tokens, or a file of documents'
// tokens (base/dataset_file.h).
absl::StatusOr<TokenizedDocuments> ReadDocuments(absl::string_view bytes);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_DATA_DOCUMENTS_H_
