#include "server/engine/data/characters.h"

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

LineReader::LineReader(absl::string_view text, size_t begins_at)
    : text_(text), begins_at_(begins_at) {
  if (begins_at == 0 && absl::StartsWith(text_, kByteOrderMark)) offset_ = kByteOrderMark.size();
}

absl::StatusOr<bool> LineReader::Next(std::u32string& line) {
  line.clear();
  if (offset_ == text_.size()) return false;
  while (offset_ < text_.size()) {
    const size_t start = offset_;
    const char32_t point = text::DecodeUtf8(text_, offset_);
    if (point == text::kNotUtf8) {
      return absl::InvalidArgumentError(absl::StrFormat("the text is not UTF-8: byte %d is 0x%02x",
                                                        begins_at_ + start,
                                                        static_cast<unsigned char>(text_[start])));
    }
    const bool ends_line = offset_ == text_.size() || text_[offset_] == '\n';
    if (point == '\r' && ends_line) continue;
    if (text::IsControl(point) && point != '\t' && point != '\n') {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the text has the control character U+%04X at byte %d; only tabs and line "
          "ends (LF, CR LF) are allowed",
          static_cast<uint32_t>(point), begins_at_ + start));
    }
    line.push_back(point);
    if (point == '\n') break;
  }
  return true;
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
