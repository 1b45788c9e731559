#include "client/output/wrap.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr int kMaxTermWidth = 26;

// Splits at spaces outside of backticks.
std::vector<absl::string_view> Words(absl::string_view text) {
  std::vector<absl::string_view> words;
  size_t start = 0;
  bool quoted = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '`') quoted = !quoted;
    if (i < text.size() && (text[i] != ' ' || quoted)) continue;
    if (i > start) words.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return words;
}

// Returns where the text of `line` begins, in bytes: after its indentation, or after its term.
size_t TextStart(absl::string_view line) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", indent);
  if (indent == 0 || gap == absl::string_view::npos) return indent;
  const size_t text = line.find_first_not_of(' ', gap);
  return text == absl::string_view::npos ? indent : text;
}

void AppendWrapped(absl::string_view line, int width, std::string* out) {
  if (DisplayWidth(line) <= width || absl::StartsWith(line, "  ablate ")) {
    out->append(line.data(), line.size());
    return;
  }
  const size_t start = TextStart(line);
  const int indent = DisplayWidth(line.substr(0, start));
  out->append(line.data(), start);
  int column = indent;
  for (const absl::string_view word : Words(line.substr(start))) {
    const int wide = DisplayWidth(word);
    if (column > indent && column + 1 + wide > width) {
      absl::StrAppend(out, "\n", std::string(static_cast<size_t>(indent), ' '));
      column = indent;
    }
    absl::StrAppend(out, column > indent ? " " : "", word);
    column += wide + (column > indent ? 1 : 0);
  }
}

}  // namespace

std::string Wrap(absl::string_view text, int width) {
  std::string out;
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!first) out += '\n';
    first = false;
    AppendWrapped(line, width, &out);
  }
  return out;
}

std::string WrapProse(absl::string_view text, int width) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool row = line.find("  ", indent) != absl::string_view::npos;
    lines.push_back(row ? std::string(line) : Wrap(line, width));
  }
  return absl::StrJoin(lines, "\n");
}

std::string TermList(const std::vector<std::pair<std::string, std::string>>& rows, int width,
                     int least) {
  int column = least;
  for (const auto& [term, text] : rows) {
    if (DisplayWidth(term) <= kMaxTermWidth) column = std::max(column, DisplayWidth(term));
  }
  std::string out;
  for (const auto& [term, text] : rows) {
    const int padding = column - DisplayWidth(term);
    std::string line = absl::StrCat("  ", term);
    if (padding < 0) {
      absl::StrAppend(&out, line, "\n");
      line = std::string(static_cast<size_t>(column) + 2, ' ');
    } else {
      line.append(static_cast<size_t>(padding), ' ');
    }
    absl::StrAppend(&out, Wrap(absl::StrCat(line, "  ", text), width), "\n");
  }
  return out;
}

}  // namespace ablate::client
