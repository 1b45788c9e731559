// A table as a value, rendered as text, CSV and LaTeX; html/sections.h writes it for a page.
#ifndef ABLATE_SERVER_REPORT_TABLE_TABLE_H_
#define ABLATE_SERVER_REPORT_TABLE_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace ablate::report {

// A cell of any texts, each empty if there is none.
struct TableCell {
  std::string text;           // if empty the cell is a dash, or its note, the reason
  std::string interval = {};  // "[2.42, 2.45]"
  std::string note = {};      // "4 of 6 pairs", "too few runs"
};

struct Column {
  std::string title;
  bool number = false;                // aligned to the right
  std::vector<TableCell> cells = {};  // one per row
  std::string group = {};             // heading over neighbours of the same group
  bool leads = false;                 // first on a phone, where a row becomes a list
  std::string id = {};                // by which a caller chooses it; empty: none
};

// Every column has the same number of cells. The first column names the rows.
struct Table {
  std::vector<Column> columns;
  std::string note = {};    // above the titles, for people; "": none
  std::string legend = {};  // explains the cells, in sentences; "": none
  bool stacked = false;  // a cell of LaTeX is two lines: the text, and the interval in small print
  std::vector<bool> baselines = {};  // one per row, true if a page shades it; empty: none
};

// Neighbouring columns of the same group.
struct ColumnGroup {
  std::string name;
  size_t first = 0, columns = 0;
};

// Returns all of them, from the first column on.
std::vector<ColumnGroup> GroupsOf(const Table& table);

// Returns "+0.031 [+0.024, +0.038] (10 of 12 pairs)"; without a text the note alone; "" of an empty
// cell.
std::string OneLine(const TableCell& cell);

// Returns the note, a line of groups if there are any, one of titles and one per row, two spaces
// between columns, and the legend; an empty cell is a dash. Fit for a terminal: characters that
// move its cursor or change the direction of writing become U+FFFD. Each character counts as one
// column.
std::string RenderText(const Table& table);

// Returns RFC 4180 in UTF-8: a line of titles and one per row, each ended by CR LF; texts are
// unchanged, an empty cell is empty. Leaves out note, legend and groups, which belong to no column.
std::string RenderCsv(const Table& table);

// Returns a tabular for the package booktabs, with the legend as a comment; an empty cell is a
// dash. No text is read as a command: LaTeX's special characters are escaped, and characters that
// its fonts may lack or that aren't text are named, as in U+202E.
std::string RenderLatex(const Table& table);

// Escapes a text as RenderLatex does.
std::string EscapeLatex(const std::string& text);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_TABLE_H_
