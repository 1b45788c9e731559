#include "proto/yaml/source_text.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"

namespace ablate::yaml {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr size_t kMarkInterval = 256;

// Returns the text between the quotes at the front of `*text` and removes it with its quotes.
// Control characters are written as \xNN there, other escapes are a backslash before the character
// itself.
std::string TakeQuoted(absl::string_view* text) {
  std::string out;
  size_t i = 1;
  for (; i < text->size() && (*text)[i] != '"'; ++i) {
    uint32_t code = 0;
    if ((*text)[i] != '\\' || i + 1 == text->size()) {
      out += (*text)[i];
    } else if ((*text)[i + 1] == 'x' && absl::SimpleHexAtoi(text->substr(i + 2, 2), &code)) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += (*text)[++i];
    }
  }
  text->remove_prefix(std::min(i + 1, text->size()));
  return out;
}

// Names never hold the separator: files with control characters are refused.
std::string Key(const FieldPath& path) { return absl::StrJoin(path, "\x1f"); }

}  // namespace

std::string ToString(const Diagnostic& diagnostic, absl::string_view file) {
  const auto& [position, message, where, field] = diagnostic;
  if (!where.empty()) return absl::StrCat(where, ": ", message);
  if (position.line == 0) return absl::StrCat(file, ": ", message);
  return absl::StrCat(file, ":", position.line, ":", position.column, ": ", message);
}

std::string WithoutField(absl::string_view message, absl::string_view field) {
  absl::string_view rest = message;
  if (!absl::ConsumePrefix(&rest, field)) return std::string(message);
  if (absl::StartsWith(rest, "[")) return std::string(rest);
  const bool cut = absl::ConsumePrefix(&rest, ": ") || absl::ConsumePrefix(&rest, ".");
  return std::string(cut ? rest : message);
}

void SortByPosition(std::vector<Diagnostic>* diagnostics) {
  std::stable_sort(diagnostics->begin(), diagnostics->end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return std::tie(a.where, a.position.line, a.position.column, a.message) <
                            std::tie(b.where, b.position.line, b.position.column, b.message);
                   });
}

SourceText::SourceText(std::string text) : text_(std::move(text)) {
  if (absl::StartsWith(text_, kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  Position position{1, 1};
  for (size_t i = 0; i < text_.size();) {
    if (position.column == 1) line_starts_.push_back(i);
    if (position.column == 1 || i >= marks_.back().offset + kMarkInterval) {
      marks_.push_back({i, position});
    }
    const bool ends = text_[i] == '\n';
    i += text::FirstCharacter(absl::string_view(text_).substr(i)).bytes;
    position = ends ? Position{position.line + 1, 1} : Position{position.line, position.column + 1};
  }
  if (position.column == 1) {  // an empty line is a line, too
    line_starts_.push_back(text_.size());
    marks_.push_back({text_.size(), position});
  }
}

Position SourceText::At(size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto next =
      std::upper_bound(marks_.begin(), marks_.end(), offset,
                       [](size_t value, const Mark& mark) { return value < mark.offset; });
  const auto& [start, known] = *std::prev(next);
  Position position = known;
  absl::string_view rest = absl::string_view(text_).substr(start, offset - start);
  while (!rest.empty()) {
    rest.remove_prefix(text::FirstCharacter(rest).bytes);
    ++position.column;
  }
  return position;
}

size_t SourceText::Offset(int line, int byte_column) const {
  if (line < 0 || static_cast<size_t>(line) >= line_starts_.size()) return text_.size();
  return std::min(line_starts_[line] + static_cast<size_t>(std::max(byte_column, 0)), text_.size());
}

std::vector<Diagnostic> SourceText::Check() const {
  if (text_.size() > kMaxFileBytes) return {{{}, std::string(TooLarge().message()), ""}};
  if (const absl::string_view encoding = text::WideEncoding(text_); !encoding.empty()) {
    return {{At(0), absl::StrCat("the file is in ", encoding, ": save it as UTF-8"), ""}};
  }
  for (size_t i = 0; i < text_.size();) {
    const text::Character c = text::FirstCharacter(absl::string_view(text_).substr(i));
    if (!c.valid) {
      return {
          {At(i), absl::StrFormat("byte 0x%02x is not UTF-8: save the file as UTF-8", c.code), ""}};
    }
    const bool allowed = c.code == '\t' || c.code == '\n' || c.code == '\r';
    if (text::IsControl(c.code) && !allowed) {
      return {{At(i), absl::StrFormat("control character U+%04X is not allowed", c.code), ""}};
    }
    i += c.bytes;
  }
  return {};
}

absl::Status TooLarge() {
  return absl::InvalidArgumentError("the file is larger than 1 MiB, the most an experiment may be");
}

FieldPath ParseFieldPath(absl::string_view text) {
  FieldPath path;
  while (!text.empty()) {
    if (text[0] == '.' || text[0] == '[' || text[0] == ']') {
      text.remove_prefix(1);
    } else if (text[0] == '"') {
      path.push_back(TakeQuoted(&text));
    } else {
      const size_t end = std::min(text.find_first_of(".[]"), text.size());
      path.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  return path;
}

void SourceMap::Add(const FieldPath& path, Position position) { positions_[Key(path)] = position; }

bool SourceMap::Has(const FieldPath& path) const { return positions_.count(Key(path)) > 0; }

Position SourceMap::Find(absl::string_view field) const {
  for (FieldPath path = ParseFieldPath(field); !path.empty(); path.pop_back()) {
    const auto found = positions_.find(Key(path));
    if (found != positions_.end()) return found->second;
  }
  return {};
}

}  // namespace ablate::yaml
