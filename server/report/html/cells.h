// Cells of tables: a text, what stands below it in small, and why there is neither.
#ifndef ABLATE_SERVER_REPORT_HTML_CELLS_H_
#define ABLATE_SERVER_REPORT_HTML_CELLS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/html/markup.h"
#include "server/report/number.h"

namespace ablate::html {

struct TableCell {
  std::string text;   // "": a dash
  std::string below;  // an interval, or the reason of the dash
};

// Decimals as report::DecimalsFor chooses them.
TableCell NumberCell(const report::Number& number);
// About pairs, with two decimals.
TableCell PairNumberCell(const report::Number& number);
// A mean above its interval; with a sign for differences.
TableCell MeanCell(const report::Number& mean, const report::Interval& interval);
TableCell DifferenceCell(const report::Number& mean, const report::Interval& interval);
// ".031", "< .001".
TableCell PCell(const report::Number& p);

// Writes it as <td>.
void WriteCell(const TableCell& cell, Markup* out);

// The table's caption; on a phone it stays in view while the table scrolls.
void Caption(absl::string_view text, Markup* out);

// A line of column heads, each of one column.
void HeadRow(const std::vector<std::string>& titles, Markup* out);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_CELLS_H_
