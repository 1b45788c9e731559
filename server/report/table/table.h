// A table as columns of texts, and the three ways to write it down.
#ifndef ABLATE_SERVER_REPORT_TABLE_TABLE_H_
#define ABLATE_SERVER_REPORT_TABLE_TABLE_H_

#include <string>
#include <vector>

namespace ablate::report {

struct Column {
  std::string title;
  bool number = false;             // aligned to the right
  std::vector<std::string> cells;  // one a row; any text
};

// Every column has as many cells.
struct Table {
  std::vector<Column> columns;
  std::string note = {};  // above the titles, for people; "": none
};

// The note, a line of titles and one a row, two spaces between columns. Fit for a terminal: what
// would move its cursor or turn the direction of writing is U+FFFD. Characters count as one column
// each.
std::string RenderText(const Table& table);

// RFC 4180 in UTF-8: a line of titles and one a row, each ended by CR LF; texts are kept as they
// are. The note is left out: no column has it.
std::string RenderCsv(const Table& table);

// A tabular for the package booktabs. Nothing of a text is taken as a command: what LaTeX reads as
// one is escaped, what its fonts may lack or what is no text is named, as in U+202E.
std::string RenderLatex(const Table& table);

// A text as RenderLatex writes it.
std::string EscapeLatex(const std::string& text);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_TABLE_H_
