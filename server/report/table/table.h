// A table as a value, and its forms as text, CSV and LaTeX; html/sections.h writes it for a page.
#ifndef ABLATE_SERVER_REPORT_TABLE_TABLE_H_
#define ABLATE_SERVER_REPORT_TABLE_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace ablate::report {

// Any texts, each empty if there is none.
struct TableCell {
  std::string text;           // without it a cell is a dash, or its note, the reason
  std::string interval = {};  // "[2.42, 2.45]"
  std::string note = {};      // "4 of 6 pairs", "too few runs"
};

struct Column {
  std::string title;
  bool number = false;                // aligned to the right
  std::vector<TableCell> cells = {};  // one per row
  std::string group = {};             // heading over neighbours of the same group
  bool leads = false;                 // on a phone, where a row becomes a list, stands first
};

// Every column has the same number of cells. The first column names the rows.
struct Table {
  std::vector<Column> columns;
  std::string note = {};             // above the titles, for people; "": none
  std::vector<bool> baselines = {};  // one per row, true if a page shades it; empty: none
};

// Neighbouring columns of the same group.
struct ColumnGroup {
  std::string name;
  size_t first = 0, columns = 0;
};

// Returns all of them, from the first column on.
std::vector<ColumnGroup> GroupsOf(const Table& table);

// Returns "+.031 [+.024, +.038] (10 of 12 pairs)"; without a text the note alone; "" of an empty
// cell.
std::string OneLine(const TableCell& cell);

// Returns the note, a line of groups if there are any, one of titles and one per row, two spaces
// between columns; an empty cell is a dash. Fit for a terminal: what would move its cursor or turn
// the direction of writing is U+FFFD. Characters count as one column each.
std::string RenderText(const Table& table);

// Returns RFC 4180 in UTF-8: a line of titles and one per row, each ended by CR LF; texts are kept
// as they are, an empty cell is empty. Note and groups are left out: no column has them.
std::string RenderCsv(const Table& table);

// Returns a tabular for the package booktabs; an empty cell is a dash. Nothing of a text is taken
// as a command: what LaTeX reads as one is escaped, what its fonts may lack or what is no text is
// named, as in U+202E.
std::string RenderLatex(const Table& table);

// A text as RenderLatex writes it.
std::string EscapeLatex(const std::string& text);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_TABLE_H_
