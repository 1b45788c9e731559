#include "server/engine/core/data/characters.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace ablate::engine {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(absl::string_view text, size_t first_line) : text_(text), line_(first_line) {
  if (first_line == 1 && absl::StartsWith(text_, kByteOrderMark)) offset_ = kByteOrderMark.size();
}

absl::StatusOr<bool> LineReader::Next(std::u32string& line) {
  line.clear();
  if (offset_ == text_.size()) return false;
  ++line_;
  while (offset_ < text_.size()) {
    const char32_t point = text::DecodeUtf8(text_, offset_);
    if (point == text::kNotUtf8) {
      return Problem(line.size(), absl::StrFormat("byte 0x%02x isn't UTF-8",
                                                  static_cast<unsigned char>(text_[offset_])));
    }
    const bool ends_line = offset_ == text_.size() || text_[offset_] == '\n';
    if (point == '\r' && ends_line) continue;
    if (text::IsControl(point) && point != '\t' && point != '\n') {
      return Problem(line.size(),
                     absl::StrFormat("control character U+%04X%s", static_cast<uint32_t>(point),
                                     point == '\r' ? ", CR without LF" : ""));
    }
    line.push_back(point);
    if (point == '\n') break;
  }
  return true;
}

absl::Status LineReader::Problem(size_t read, absl::string_view problem) {
  const size_t end = text_.find('\n', offset_);
  offset_ = end == absl::string_view::npos ? text_.size() : end + 1;
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line_ - 1, ", column ", read + 1, ": ", problem));
}

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

std::optional<uint32_t> RankOf(char32_t point, const std::u32string& alphabet) {
  const auto place = std::lower_bound(alphabet.begin(), alphabet.end(), point);
  if (place == alphabet.end() || *place != point) return std::nullopt;
  return static_cast<uint32_t>(place - alphabet.begin());
}

std::string Utf8Of(const std::u32string& points) {
  std::string bytes;
  for (const char32_t point : points) bytes += text::EncodeUtf8(point);
  return bytes;
}

std::string CharacterText(char32_t point) {
  const std::string number = absl::StrFormat("U+%04X", static_cast<uint32_t>(point));
  if (text::IsControl(point)) return number;
  return absl::StrCat("\"", text::EncodeUtf8(point), "\" ", number);
}

}  // namespace ablate::engine
