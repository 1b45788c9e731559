// Reads a table of results from text: CSV, TSV, or JSON lines.
#ifndef ABLATE_CLIENT_IMPORTS_TABLE_H_
#define ABLATE_CLIENT_IMPORTS_TABLE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::client {

// A column. All cells of a column that is numeric are numbers or empty.
struct TableColumn {
  std::string name;
  std::vector<absl::string_view> cells;  // one per row; an absent value is empty
  bool numeric = false;
  bool constant = true;  // all cells that aren't empty are equal
};

// Owns the text that its cells refer to. Can be moved, not copied.
struct ResultTable {
  ResultTable() = default;
  ResultTable(ResultTable&&) = default;
  ResultTable& operator=(ResultTable&&) = default;

  std::string file;  // as messages name it
  std::vector<TableColumn> columns;
  size_t rows = 0;
  std::vector<size_t> lines;  // of the file, one per row, from 1
  std::vector<std::string> notes;

  // Returns the column of this name, without regard to case; null if there is none.
  const TableColumn* Find(absl::string_view name) const;

  std::unique_ptr<std::string> text;
  std::deque<std::string> unescaped;  // cells that differ from the file's text
};

// Reads CSV as in RFC 4180 with a line of names. Columns are divided by commas, semicolons or tabs,
// whichever the names have. INVALID_ARGUMENT names file, line and problem.
absl::StatusOr<ResultTable> ReadCsv(const std::string& file, std::string text);

// Reads one JSON object per line. Nested objects have names with dots. INVALID_ARGUMENT likewise.
absl::StatusOr<ResultTable> ReadJsonLines(const std::string& file, std::string text);

// Returns a cell as a number: a decimal, nan, or inf with a sign. False for other texts.
bool ReadNumber(absl::string_view cell, double* number);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_IMPORTS_TABLE_H_
