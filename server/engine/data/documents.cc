#include "server/engine/data/documents.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "text/utf8.h"

namespace ablate::engine {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Replaces code points by their rank among the distinct ones, and returns those.
std::u32string NumberCharacters(std::vector<uint32_t>& tokens) {
  std::vector<uint32_t> ids;  // by code point: first a mark, then the rank
  for (const uint32_t point : tokens) {
    if (point >= ids.size()) ids.resize(point + 1);
    ids[point] = 1;
  }
  std::u32string alphabet;
  for (size_t point = 0; point < ids.size(); ++point) {
    if (ids[point] == 0) continue;
    ids[point] = static_cast<uint32_t>(alphabet.size());
    alphabet.push_back(static_cast<char32_t>(point));
  }
  for (uint32_t& token : tokens) token = ids[token];
  return alphabet;
}

}  // namespace

DocumentReader::DocumentReader(absl::string_view text, size_t begins_at)
    : text_(text), begins_at_(begins_at) {
  if (begins_at == 0 && absl::StartsWith(text_, kByteOrderMark)) offset_ = kByteOrderMark.size();
}

absl::Status DocumentReader::ReadLine(std::u32string& line) {
  while (offset_ < text_.size()) {
    const size_t start = offset_;
    const char32_t point = text::DecodeUtf8(text_, offset_);
    if (point == '\n') return absl::OkStatus();
    if (point == text::kNotUtf8) {
      return absl::InvalidArgumentError(absl::StrFormat("the text is not UTF-8: byte %d is 0x%02x",
                                                        begins_at_ + start,
                                                        static_cast<unsigned char>(text_[start])));
    }
    const bool ends_line = offset_ == text_.size() || text_[offset_] == '\n';
    if (point == '\r' && ends_line) continue;
    if (text::IsControl(point) && point != '\t') {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the text has the control character U+%04X at byte %d; only tabs and line "
          "ends (LF, CR LF) are allowed",
          static_cast<uint32_t>(point), begins_at_ + start));
    }
    line.push_back(point);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DocumentReader::Next(std::u32string& document) {
  document.clear();
  while (document.empty() && offset_ < text_.size()) {
    const absl::Status status = ReadLine(document);
    if (!status.ok()) return status;
  }
  return !document.empty();
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
  // They are kept for long, and room that is not used would be as much again.
  documents.tokens.shrink_to_fit();
  documents.starts.shrink_to_fit();
  return documents;
}

}  // namespace ablate::engine
