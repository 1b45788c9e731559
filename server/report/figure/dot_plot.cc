#include "server/report/figure/dot_plot.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/dot_marks.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {

void WriteValues(bool differences, report::Scale scale, DotGroup* group) {
  std::vector<report::ColumnNumber> column;
  for (const DotRow& row : group->rows) column.push_back({row.mean, row.interval});
  const int digits = report::ColumnDecimals(scale, column);
  for (DotRow& row : group->rows) {
    const report::Number& mean = row.mean;
    if (!mean.defined()) {
      row.value = std::string(differences ? report::PairReasonText(mean.undefined)
                                          : report::ReasonText(mean.undefined));
      continue;
    }
    const report::NumberWords words =
        differences ? report::ShownDifference(scale, mean, row.interval, digits)
                    : report::ShownMean(scale, mean.value, row.interval,
                                        report::DecimalsIn(digits, mean, row.interval));
    row.value = absl::StrCat(words.text(), row.interval.defined() ? "" : ", no interval");
  }
}

std::string UnitsTitle(report::Unit unit) {
  return unit != report::Unit::kSeed ? absl::StrCat(report::UnitName(unit), "s") : "n";
}

std::string UnitsText(report::Unit unit, const std::string& number) {
  return unit != report::Unit::kSeed ? absl::StrCat(number, " ", UnitsTitle(unit))
                                     : absl::StrCat("n = ", number);
}

MeanMark MarkOf(const report::Comparison& comparison, const report::ComparisonRow& row) {
  const bool decided = report::Decide(comparison, row).grade >= report::Grade::kProbable;
  return decided ? MeanMark::kFilled : MeanMark::kHollow;
}

void SortRows(report::Better better, std::vector<DotRow>* rows) {
  const double sign = better == report::Better::kHigher ? -1 : 1;
  std::stable_sort(rows->begin(), rows->end(), [sign](const DotRow& a, const DotRow& b) {
    if (!a.mean.defined() || !b.mean.defined()) return a.mean.defined() && !b.mean.defined();
    return sign * a.mean.value < sign * b.mean.value;
  });
}

namespace {

constexpr double kRow = 0.29, kDenseRow = 0.235;  // a row's height, and with many rows
constexpr size_t kRoomy = 8;                      // rows in all
constexpr double kMaxPlotHeight = 9.5;            // of a page
constexpr double kHeader = 0.15, kNumbers = 0.2, kGroupGap = 0.1, kAxisTitle = 0.16;
constexpr double kMaxColumn = 0.9;  // of texts at the right: more would leave no room for the axis
constexpr double kLabelLine = 0.125, kRemarkLine = 0.1;
constexpr double kRowMargin = 0.04;  // above and below a row's names together
constexpr size_t kMostLabelLines = 4;
constexpr double kValueSize = 7.5, kHeadSize = 6.5;

// Positions across the figure, in inches.
struct Columns {
  bool wide = false;
  size_t lines = 1;             // most lines of a label
  double label = 1;             // width of the labels
  double left = 1, right = 2;   // of the axes
  double value = 2;             // left edge of the values, or right edge of the short ones
  std::vector<double> centers;  // of the columns
};

template <typename Visit>
void ForEachRow(const DotPlot& dots, Visit visit) {
  for (const DotGroup& group : dots.groups) {
    for (const DotRow& row : group.rows) visit(row);
  }
}

// Returns a label's lines in its column, broken after spaces and punctuation.
std::vector<std::string> LabelLines(const Columns& columns, absl::string_view label) {
  const std::string clean = text::CleanText(label);
  std::vector<std::string> lines(1);
  for (size_t begin = 0, end = 0; begin < clean.size(); begin = end) {
    end = std::min(clean.find_first_of(" ,.-_/=", begin), clean.size() - 1) + 1;
    const std::string longer = absl::StrCat(lines.back(), clean.substr(begin, end - begin));
    const bool fits =
        TextWidth(absl::StripTrailingAsciiWhitespace(longer), kTitleSize) <= columns.label;
    if (fits || lines.back().empty() || lines.size() == columns.lines) {
      lines.back() = longer;
    } else {
      lines.push_back(clean.substr(begin, end - begin));
    }
  }
  for (std::string& line : lines) {
    line = ElideMiddle(absl::StripTrailingAsciiWhitespace(line), columns.label, kTitleSize);
  }
  return lines;
}

const std::string& RemarkOf(const Columns& columns, const DotRow& row) {
  return columns.wide ? row.remark : row.narrow_remark;
}

// Returns the height of a row's label and remark.
double NamesHeight(const Columns& columns, const DotRow& row) {
  return kLabelLine * static_cast<double>(LabelLines(columns, row.label).size()) +
         (RemarkOf(columns, row).empty() ? 0 : kRemarkLine);
}

double RowHeight(const Columns& columns, const DotRow& row, double least) {
  return std::max(least, NamesHeight(columns, row) + kRowMargin);
}

// Arranges the columns. With `lines`, labels that are too long are broken; otherwise they are
// elided.
Columns Arrange(const DotPlot& dots, double width, bool lines) {
  Columns columns;
  columns.wide = width >= 5;
  const double most = width * (columns.wide ? 0.22 : 0.25);
  columns.lines = lines ? kMostLabelLines : 1;
  double label = 0, value = TextWidth(dots.value_title, kHeadSize), narrow = 0;
  std::vector<double> widths;
  for (const std::string& title : dots.column_titles) widths.push_back(TextWidth(title, kHeadSize));
  ForEachRow(dots, [&](const DotRow& row) {
    label = std::max(label, TextWidth(text::CleanText(row.label), kTitleSize));
    label = std::max(label, TextWidth(RemarkOf(columns, row), kSmallSize));
    value = std::max(value, TextWidth(row.value, kValueSize));
    narrow = std::max(
        {narrow, TextWidth(row.value, kLabelSize), TextWidth(row.short_remark, kSmallSize)});
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], TextWidth(row.columns[i], kValueSize));
    }
  });
  columns.label = std::min(label, most) + 0.01;
  columns.left = kEdge + columns.label + 0.14;
  double edge = width - kEdge;
  if (!columns.wide) {
    columns.value = edge;
    columns.right = edge - std::min(narrow, width * 0.45) - 0.16;
    return columns;
  }
  columns.centers.resize(widths.size());
  for (size_t i = widths.size(); i-- > 0;) {
    widths[i] = std::min(widths[i], kMaxColumn);
    columns.centers[i] = edge - widths[i] / 2;
    edge -= widths[i] + 0.16;
  }
  columns.value = edge - value;
  columns.right = columns.value - 0.18;
  return columns;
}

Axis AxisOf(const DotPlot& dots, const DotGroup& group, double inches) {
  Extent extent = ShownMarks(group, dots.zero);
  const bool nothing = extent.empty();
  if (dots.zero) extent.Add(0);
  const auto ticks = static_cast<size_t>(std::max(inches / 0.42, 2.0));
  Axis axis = dots.ratios ? RatioAxis(extent, 0.06, ticks) : LinearAxis(extent, 0.06, ticks);
  if (nothing) axis.ticks.clear();
  axis.grid = true;
  return axis;
}

void AddRowTexts(const DotRow& row, const Columns& columns, double y, Figure* figure) {
  const std::string& remark = RemarkOf(columns, row);
  const std::vector<std::string> label = LabelLines(columns, row.label);
  double line = y + (NamesHeight(columns, row) - kLabelLine) / 2;
  for (const std::string& text : label) {
    figure->texts.push_back({kEdge, line, text, kTitleSize, row.style.text});
    line -= kLabelLine;
  }
  if (!remark.empty()) {
    figure->texts.push_back({kEdge, line + (kLabelLine - kRemarkLine) / 2,
                             ElideMiddle(remark, columns.label, kSmallSize), kSmallSize,
                             kSecondary});
  }
  if (!columns.wide) {
    figure->texts.push_back({columns.value, y + 0.055, row.value, kLabelSize, kInk, Align::kRight});
    figure->texts.push_back(
        {columns.value, y - 0.055, row.short_remark, kSmallSize, kSecondary, Align::kRight});
    return;
  }
  figure->texts.push_back({columns.value, y, row.value, kValueSize, kInk});
  for (size_t i = 0; i < columns.centers.size(); ++i) {
    figure->texts.push_back({columns.centers[i], y,
                             ElideMiddle(row.columns[i], kMaxColumn, kValueSize), kValueSize, kInk,
                             Align::kCenter});
  }
}

// Adds words on both sides of the rule at 0 if there is room.
void AddSides(const DotPlot& dots, const Panel& panel, double y, const Columns& columns,
              Figure* figure) {
  const double zero = XInches(panel, 0);
  const auto room = [](const std::string& text) { return TextWidth(text, kSmallSize) + 0.05; };
  if (!dots.below.empty() && zero - room(dots.below) > kEdge) {
    figure->texts.push_back({zero - 0.05, y, dots.below, kSmallSize, kSecondary, Align::kRight});
  }
  const double limit = columns.wide ? columns.value : figure->width - kEdge;
  if (!dots.above.empty() && zero + room(dots.above) < limit - 0.05) {
    figure->texts.push_back({zero + 0.05, y, dots.above, kSmallSize, kSecondary});
  }
}

void AddColumnTitles(const DotPlot& dots, const Columns& columns, double y, Figure* figure) {
  if (!columns.wide) return;
  figure->texts.push_back({columns.value, y, dots.value_title, kHeadSize, kSecondary});
  for (size_t i = 0; i < columns.centers.size(); ++i) {
    figure->texts.push_back({columns.centers[i], y,
                             ElideMiddle(dots.column_titles[i], kMaxColumn, kHeadSize), kHeadSize,
                             kSecondary, Align::kCenter});
  }
}

// Heights, in inches.
struct Heights {
  double row = kRow, header = kHeader, all = 0;
};

double RowsHeight(const DotGroup& group, const Columns& columns, const Heights& heights) {
  double height = 0;
  for (const DotRow& row : group.rows) height += RowHeight(columns, row, heights.row);
  return height;
}

DotNumbers NumbersOf(const DotPlot& dots) {
  if (dots.ratios) return DotNumbers::kRatios;
  return dots.zero ? DotNumbers::kDifferences : DotNumbers::kValues;
}

void AddGroup(const DotPlot& dots, const DotGroup& group, const Axis& axis, const Columns& columns,
              const Heights& heights, double bottom, Figure* figure) {
  Panel panel;
  panel.left = columns.left;
  panel.right = columns.right;
  panel.bottom = bottom;
  panel.top = bottom + RowsHeight(group, columns, heights);
  panel.x = axis;
  panel.y.high = panel.top - bottom;
  panel.y.line = false;
  if (dots.zero) {
    const double zero = XInches(panel, 0);
    panel.rules.push_back({zero, panel.bottom, zero, panel.top + 0.03, kInk, 0.7, {}});
  }
  double top = panel.top;
  for (const DotRow& row : group.rows) {
    const double height = RowHeight(columns, row, heights.row);
    top -= height;
    const double base = top + (height - heights.row) / 2;
    AddRowMarks(row, NumbersOf(dots), {base - bottom, heights.row}, &panel, figure);
    AddRowTexts(row, columns, top + height / 2, figure);
  }
  figure->panels.push_back(std::move(panel));
}

bool EndsAxisTitle(const DotPlot& dots, size_t g) {
  return g + 1 == dots.groups.size() || dots.groups[g + 1].axis_title != dots.groups[g].axis_title;
}

Heights HeightsOf(const DotPlot& dots, const Columns& columns, size_t footnote_lines) {
  Heights heights;
  size_t rows = 0;
  for (const DotGroup& group : dots.groups) rows += group.rows.size();
  heights.row = rows <= kRoomy ? kRow : kDenseRow;
  heights.header = columns.wide || dots.zero ? kHeader : 0.06;
  heights.all = 0.02 + heights.header + kEdge + kFootnoteLine * static_cast<double>(footnote_lines);
  for (size_t g = 0; g < dots.groups.size(); ++g) {
    heights.all += RowsHeight(dots.groups[g], columns, heights) + kNumbers +
                   (g > 0 ? kGroupGap : 0) + (dots.groups[g].title.empty() ? 0 : kTitleLine) +
                   (EndsAxisTitle(dots, g) ? kAxisTitle : 0);
  }
  return heights;
}

// Returns the groups' axes, and sets the footnote about marks beyond them.
std::vector<Axis> AxesOf(const DotPlot& dots, const Columns& columns, std::string* footnote) {
  std::vector<Axis> axes;
  BeyondAxis beyond;
  for (const DotGroup& group : dots.groups) {
    axes.push_back(AxisOf(dots, group, columns.right - columns.left));
    beyond.Add(group, axes.back());
  }
  if (const std::string text = beyond.Text(); !text.empty()) absl::StrAppend(footnote, "; ", text);
  return axes;
}

// Draws everything except the footnote.
Figure DrawGroups(const DotPlot& dots, const std::vector<Axis>& axes, const Columns& columns,
                  const Heights& heights, double width) {
  Figure figure;
  figure.width = width;
  figure.height = heights.all;
  double top = heights.all - 0.02;
  for (size_t g = 0; g < dots.groups.size(); ++g) {
    const DotGroup& group = dots.groups[g];
    if (!group.title.empty()) {
      top -= kTitleLine;
      AddPanelTitle(kEdge, width - kEdge, top, group.title, group.remark, &figure);
    }
    if (g == 0) top -= heights.header;
    const double bottom = top - RowsHeight(group, columns, heights);
    AddGroup(dots, group, axes[g], columns, heights, bottom, &figure);
    if (g == 0) {
      AddColumnTitles(dots, columns, top + 0.06, &figure);
      if (dots.zero) AddSides(dots, figure.panels.back(), top + 0.07, columns, &figure);
    }
    top = bottom - kNumbers;
    if (EndsAxisTitle(dots, g)) {
      AddXTitle(columns.left, columns.right, top - 0.06, group.axis_title, &figure);
      top -= kAxisTitle;
    }
    top -= kGroupGap;
  }
  return figure;
}

size_t RowsIn(const DotPlot& dots) {
  return std::accumulate(dots.groups.begin(), dots.groups.end(), size_t{0},
                         [](size_t sum, const DotGroup& group) { return sum + group.rows.size(); });
}

}  // namespace

absl::StatusOr<Figure> DrawDotPlot(const DotPlot& dots, double width) {
  // Long labels have several lines if the page has room for them.
  for (const bool lines : {true, false}) {
    const Columns columns = Arrange(dots, width, lines);
    std::string footnote = dots.footnote;
    const std::vector<Axis> axes = AxesOf(dots, columns, &footnote);
    const std::vector<std::string> footnote_lines = FootnoteLines(footnote, width);
    const Heights heights = HeightsOf(dots, columns, footnote_lines.size());
    if (heights.all > kMaxPlotHeight) continue;
    Figure figure = DrawGroups(dots, axes, columns, heights, width);
    AddFootnote(footnote_lines, &figure);
    return figure;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "kind: the ", RowsIn(dots), " rows of ", report::Counted(dots.groups.size(), "group"),
      " don't fit into this figure; expected about 35 rows, as fit into ", kMaxPlotHeight,
      " inches"));
}

}  // namespace ablate::figure
