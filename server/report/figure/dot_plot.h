// Dot plots: rows with a dot, its interval and its seeds along one axis; groups of rows, each with
// an axis of its own, and numbers at the right.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DOT_PLOT_H_
#define ABLATE_SERVER_REPORT_FIGURE_DOT_PLOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/statistics.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/style.h"

namespace ablate::figure {

struct DotSeed {
  double value = 0;
  std::optional<uint32_t> seed;  // if known: a viewer shows it
};

// Mark of the mean: a stroke; if all rows have one colour a marker, filled for decided rows,
// otherwise hollow.
enum class MeanMark { kStroke, kFilled, kHollow };

// Return the mark of a compared row, and its footnote.
MeanMark MarkOf(const report::Comparison& comparison, const report::ComparisonRow& row);
inline constexpr absl::string_view kMarkText = "filled: established or probable";

struct DotRow {
  std::string label;
  // Text below the label of a wide and of a narrow figure; may be empty.
  std::string remark, narrow_remark;
  Style style;
  MeanMark mark = MeanMark::kStroke;
  std::vector<DotSeed> seeds;
  report::Number mean;
  report::Interval interval;
  // Text at the right: the value, then in a wide figure one text per column, in a narrow one the
  // remark below.
  std::string value;
  std::vector<std::string> columns;
  std::string short_remark;
};

// Return the title of the column of numbers of seeds or sequences: "n", "sequences"; and such a
// number beside a row: "n = 12", "2,000 sequences".
std::string UnitsTitle(report::Unit unit);
std::string UnitsText(report::Unit unit, const std::string& number);

struct DotGroup {
  std::string title;   // may be empty
  std::string remark;  // after the title, in grey
  std::vector<DotRow> rows;
  std::string axis_title;
};

// Sets the value texts of all rows, means or differences on the scale, with the decimals of one
// column: "+0.031 [+0.024, +0.038]", "×1.42 [1.31, 1.55]", "−0.021, no interval"; or why there is
// none.
void WriteValues(bool differences, report::Scale scale, DotGroup* group);

struct DotPlot {
  std::vector<DotGroup> groups;
  std::string value_title;                 // above the values
  std::vector<std::string> column_titles;  // one for each of a row's columns
  bool zero = false;                       // a rule at 0, which is within the axes
  bool ratios = false;                     // values are logarithms, shown as ratios
  std::string below, above;                // words for the sides of 0; may be empty
  std::string footnote;
};

// Sorts rows by their means, the best first and those without one last; unless `better` is higher,
// the lowest is best.
void SortRows(report::Better better, std::vector<DotRow>* rows);

// Draws the plot. INVALID_ARGUMENT if there are more rows than fit on a page.
absl::StatusOr<Figure> DrawDotPlot(const DotPlot& dots, double width);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DOT_PLOT_H_
