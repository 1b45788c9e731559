#include "client/output/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr int kGap = 2;
constexpr int kMinColumnWidth = 8;

// Takes columns' widths away, one at a time from the widest that may give, until the line fits.
void Shrink(const std::vector<Column>& columns, int width, std::vector<int>* widths) {
  const int gaps = kGap * (static_cast<int>(widths->size()) - 1);
  int excess = std::accumulate(widths->begin(), widths->end(), gaps) - width;
  while (excess > 0) {
    int* widest = nullptr;
    for (size_t i = 0; i < columns.size(); ++i) {
      int& candidate = (*widths)[i];
      if (columns[i].right || candidate <= kMinColumnWidth) continue;
      if (widest == nullptr || candidate > *widest) widest = &candidate;
    }
    if (widest == nullptr) return;
    --*widest;
    --excess;
  }
}

void AppendCell(const std::string& text, int width, bool right, bool last, std::string* line) {
  const std::string shown = Truncate(text, width);
  const std::string padding(std::max(0, width - DisplayWidth(shown)), ' ');
  if (right) *line += padding;
  *line += shown;
  if (!right && !last) *line += padding;
  if (!last) line->append(kGap, ' ');
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = Printable(column.title);
}

void Table::Add(std::vector<std::string> row) {
  row.resize(columns_.size());
  for (std::string& text : row) text = Printable(text);
  rows_.push_back(std::move(row));
}

std::string Table::Render(int width) const {
  std::vector<Column> columns;
  std::vector<size_t> places;  // of these columns in a row
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = 0;
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i]));
    if (columns_[i].optional && widest == 0) continue;
    columns.push_back(columns_[i]);
    places.push_back(i);
    widths.push_back(std::max(widest, DisplayWidth(columns_[i].title)));
  }
  if (width > 0) Shrink(columns, width, &widths);

  std::string out;
  const auto append_line = [&](const auto& text_of) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      AppendCell(text_of(places[i]), widths[i], columns[i].right, i + 1 == columns.size(), &line);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  append_line([&](size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) append_line([&](size_t i) { return row[i]; });
  return out;
}

}  // namespace ablate::client
