// Reads a text as documents, one a line: the only place that knows what a document is.
#ifndef ABLATE_SERVER_ENGINE_DATA_DOCUMENTS_H_
#define ABLATE_SERVER_ENGINE_DATA_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/task.h"

namespace ablate::engine {

// Walks over the non-empty lines of a text. Lines end with LF or CR LF; a byte order mark at the
// start is not part of the text. The text must outlive the reader.
class DocumentReader {
 public:
  explicit DocumentReader(absl::string_view text) : DocumentReader(text, 0) {}
  // `text` begins with a line, at this byte of the whole text.
  DocumentReader(absl::string_view text, size_t begins_at);

  // Puts the code points of the next document into `document`; false when there is none.
  // INVALID_ARGUMENT at a byte that is not UTF-8 or a control character that is neither a tab nor a
  // line end.
  absl::StatusOr<bool> Next(std::u32string& document);

 private:
  // Reads up to and including the next line end.
  absl::Status ReadLine(std::u32string& line);

  absl::string_view text_;
  const size_t begins_at_;
  size_t offset_ = 0;
};

// All documents of a text as tokens.
struct TokenizedDocuments : TaskData {
  std::u32string alphabet;       // code point of each token id below `bos()`, ascending
  std::vector<uint32_t> tokens;  // of all documents, one behind the other, without BOS
  std::vector<size_t> starts;    // [documents + 1] into `tokens`

  uint32_t bos() const { return static_cast<uint32_t>(alphabet.size()); }
  size_t documents() const { return starts.size() - 1; }
  uint64_t bytes() const override;

  bool operator==(const TokenizedDocuments& other) const;
};

// INVALID_ARGUMENT as DocumentReader::Next, and if there is no document.
absl::StatusOr<TokenizedDocuments> TokenizeDocuments(absl::string_view text);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_DOCUMENTS_H_
