// Tables for programs.
#include "server/report/clean_text.h"
#include "server/report/table/table.h"
#include "text/csv.h"

namespace ablate::report {

std::string RenderCsv(const Table& table) {
  std::string out;
  const auto append_line = [&](const auto& text_of) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (i > 0) out.push_back(',');
      out.append(text::CsvField(text_of(table.columns[i])));
    }
    out.append("\r\n");
  };
  append_line([](const Column& column) { return column.title; });
  const size_t rows = table.columns.empty() ? 0 : table.columns[0].cells.size();
  for (size_t row = 0; row < rows; ++row) {
    append_line([row](const Column& column) { return column.cells[row]; });
  }
  return out;
}

}  // namespace ablate::report
