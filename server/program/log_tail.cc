#include "server/program/log_tail.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace ablate::program {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// Returns the number of bytes at the end that may begin a character and need more bytes.
size_t UnfinishedBytes(absl::string_view text) {
  for (size_t size = 1; size <= std::min<size_t>(3, text.size()); ++size) {
    const auto byte = static_cast<unsigned char>(text[text.size() - size]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    const size_t needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return size < needed ? size : 0;
  }
  return 0;
}

std::string MakeUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = std::min(text::FindNotUtf8(text), text.size());
    absl::StrAppend(&result, text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    absl::StrAppend(&result, kReplacement);
    text.remove_prefix(1);
  }
  return result;
}

// Moves `at` to the begin of a character.
size_t CharacterBegin(absl::string_view text, size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

// Returns the end of `text` of at most `bytes`, from the begin of a line if there is one.
absl::string_view End(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  const size_t at = text.size() - bytes;
  if (text[at - 1] == '\n') return text.substr(at);
  const size_t line = text.find('\n', at);
  const bool has_line = line != absl::string_view::npos && line + 1 < text.size();
  return text.substr(has_line ? line + 1 : CharacterBegin(text, at));
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 would be printed as 1000.0.
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  std::string number = absl::StrFormat("%.1f", value);
  if (number.back() == '0') number.resize(number.size() - 2);  // with the point
  return absl::StrCat(number, " ", kUnits[unit]);
}

std::string LogTail::Add(absl::string_view bytes) {
  std::string raw = unfinished_ + std::string(bytes);
  const size_t unfinished = UnfinishedBytes(raw);
  unfinished_ = raw.substr(raw.size() - unfinished);
  raw.resize(raw.size() - unfinished);
  const std::string text = MakeUtf8(raw);

  absl::StrAppend(&recent_, text);
  if (recent_.size() > 2 * tail_bytes_) {
    recent_.erase(0, CharacterBegin(recent_, recent_.size() - tail_bytes_));
  }
  size_t passed = std::min(text.size(), head_left_);
  while (passed > 0 && CharacterBegin(text, passed) != passed) --passed;
  head_left_ = passed < text.size() ? 0 : head_left_ - passed;
  unpassed_ += text.size() - passed;
  if (passed > 0) at_line_begin_ = text[passed - 1] == '\n';
  return text.substr(0, passed);
}

std::string LogTail::AddRemark(absl::string_view text) {
  const bool at_begin = std::exchange(at_line_begin_, true);
  return absl::StrCat(at_begin ? "" : "\n", "ablate: ", text, "\n");
}

std::string LogTail::Finish() {
  std::string result;
  if (!unfinished_.empty()) {
    // Adding an ASCII character completes it as invalid bytes.
    result = Add("\n");
  }
  if (unpassed_ == 0) return result;
  const absl::string_view kept =
      End(recent_, std::min<uint64_t>({unpassed_, tail_bytes_, recent_.size()}));
  const uint64_t left_out = unpassed_ - kept.size();
  if (left_out > 0) {
    absl::StrAppend(&result, at_line_begin_ ? "" : "\n", "… ", FormatBytes(left_out),
                    " left out …\n");
  }
  absl::StrAppend(&result, kept);
  return result;
}

std::string LogTail::LastLines() const {
  const absl::string_view text = absl::StripTrailingAsciiWhitespace(recent_);
  return std::string(End(text, kMaxLastLines));
}

}  // namespace ablate::program
