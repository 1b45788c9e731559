// Tables for terminals.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/report/clean_text.h"
#include "server/report/table/table.h"

namespace ablate::report {
namespace {

// Characters of a clean text.
size_t WidthOf(absl::string_view text) {
  size_t width = 0;
  for (; !text.empty(); ++width) TakeCharacter(&text);
  return width;
}

void AppendCell(const std::string& text, size_t width, bool right, std::string* line) {
  const std::string space(width - WidthOf(text), ' ');
  if (!line->empty()) line->append("  ");
  line->append(right ? space + text : text + space);
}

}  // namespace

std::string RenderText(const Table& table) {
  std::vector<std::string> lines;
  for (const Column& column : table.columns) {
    std::vector<std::string> texts = {CleanText(column.title)};
    for (const std::string& cell : column.cells) texts.push_back(CleanText(cell));
    size_t width = 0;
    for (const std::string& text : texts) width = std::max(width, WidthOf(text));
    lines.resize(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) AppendCell(texts[i], width, column.number, &lines[i]);
  }
  std::string out;
  if (!table.note.empty()) out = absl::StrCat(CleanText(table.note), "\n");
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).push_back('\n');
  }
  return out;
}

}  // namespace ablate::report
