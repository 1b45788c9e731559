#include "server/report/figure/dot_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {
namespace {

std::string NumberText(double value, int decimals, bool sign) {
  return sign ? report::Signed(value, decimals) : report::Plain(value, decimals);
}

std::string ReasonText(report::Undefined reason, bool sign) {
  return std::string(sign ? report::PairReasonText(reason) : report::ReasonText(reason));
}

}  // namespace

std::string ValueText(const report::Number& mean, const report::Interval& interval, bool sign) {
  if (!mean.defined()) return ReasonText(mean.undefined, sign);
  const int decimals = report::DecimalsFor(mean.value, interval);
  const std::string value = NumberText(mean.value, decimals, sign);
  if (!interval.defined()) return absl::StrCat(value, ", no interval");
  return absl::StrCat(value, " [", NumberText(interval.low, decimals, sign), ", ",
                      NumberText(interval.high, decimals, sign), "]");
}

std::string ShortValueText(const report::Number& mean, const report::Interval& interval,
                           bool sign) {
  if (!mean.defined()) return ReasonText(mean.undefined, sign);
  const int decimals = report::DecimalsFor(mean.value, interval);
  const std::string value = NumberText(mean.value, decimals, sign);
  if (!interval.defined()) return value;
  // An interval of a test need not lie evenly around the mean.
  const double middle = (interval.low + interval.high) / 2, width = interval.high - interval.low;
  if (std::abs(mean.value - middle) > .05 * width) return ValueText(mean, interval, sign);
  return absl::StrCat(value, " ± ",
                      NumberText((interval.high - interval.low) / 2, decimals, false));
}

namespace {

constexpr double kRow = 0.29, kDenseRow = 0.235;  // a row's height, and where there are many
constexpr size_t kRoomy = 8;                      // rows in all
constexpr double kMaxHeight = 9.5;                // of a page
constexpr double kHeader = 0.15, kNumbers = 0.2, kGroupGap = 0.1, kAxisTitle = 0.16;
constexpr double kMarkerRadius = 2.5;           // of a mean: points
constexpr double kDotRadius = 1, kDot = 0.042;  // of a seed: points, and its room in inches
constexpr int kDotLevels = 3;
constexpr double kValueSize = 7.5, kHeadSize = 6.5;

// Distances across the figure, in inches.
struct Columns {
  bool wide = false;
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

Columns Arrange(const DotPlot& dots, double width) {
  Columns columns;
  columns.wide = width >= 5;
  double label = 0, value = TextWidth(dots.value_title, kHeadSize), narrow = 0;
  std::vector<double> widths;
  for (const std::string& title : dots.column_titles) widths.push_back(TextWidth(title, kHeadSize));
  ForEachRow(dots, [&](const DotRow& row) {
    label = std::max(label, TextWidth(row.label, kTitleSize));
    if (columns.wide) label = std::max(label, TextWidth(row.remark, kSmallSize));
    value = std::max(value, TextWidth(row.value, kValueSize));
    narrow = std::max(
        {narrow, TextWidth(row.short_value, kLabelSize), TextWidth(row.short_remark, kSmallSize)});
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], TextWidth(row.columns[i], kValueSize));
    }
  });
  columns.label = std::min(label, width * (columns.wide ? 0.22 : 0.25)) + 0.01;
  columns.left = kEdge + columns.label + 0.14;
  double edge = width - kEdge;
  if (!columns.wide) {
    columns.value = edge;
    columns.right = edge - std::min(narrow, width * 0.4) - 0.16;
    return columns;
  }
  columns.centers.resize(widths.size());
  for (size_t i = widths.size(); i-- > 0;) {
    columns.centers[i] = edge - widths[i] / 2;
    edge -= widths[i] + 0.16;
  }
  columns.value = edge - value;
  columns.right = columns.value - 0.18;
  return columns;
}

Axis AxisOf(const DotPlot& dots, const DotGroup& group, double inches) {
  Extent extent;
  for (const DotRow& row : group.rows) {
    for (const DotSeed& seed : row.seeds) extent.Add(seed.value);
    extent.Add(row.mean.value);
    extent.Add(row.interval.low);
    extent.Add(row.interval.high);
  }
  const bool nothing = extent.empty();
  if (dots.zero) extent.Add(0);
  const auto ticks = static_cast<size_t>(std::max(inches / 0.42, 2.0));
  Axis axis = dots.ratios ? RatioAxis(extent, 0.06, ticks) : LinearAxis(extent, 0.06, ticks);
  if (nothing) axis.ticks.clear();
  axis.grid = true;
  return axis;
}

// Seeds below the interval, stacked where they would overlap.
void AddSeeds(const DotRow& row, bool ratios, double base, double row_height, Panel* panel) {
  std::vector<DotSeed> seeds = row.seeds;
  std::sort(seeds.begin(), seeds.end(),
            [](const DotSeed& a, const DotSeed& b) { return a.value < b.value; });
  const double apart = kDot / (panel->right - panel->left) * (panel->x.high - panel->x.low);
  std::vector<double> last(kDotLevels, -std::numeric_limits<double>::infinity());
  Points points;
  points.color = Tint(row.style.line);
  points.radius = kDotRadius;
  for (const DotSeed& seed : seeds) {
    int level = 0;
    while (level + 1 < kDotLevels && seed.value - last[level] < apart) ++level;
    last[level] = seed.value;
    points.x.push_back(seed.value);
    points.y.push_back(base + (0.115 - 0.037 * level) / row_height);
    if (!seed.seed.has_value()) continue;
    const std::string value = ratios ? report::ShownRatio(std::exp(seed.value))
                                     : report::Plain(seed.value, report::DecimalsFor(seed.value));
    points.titles.push_back(absl::StrCat("seed ", *seed.seed, ": ", value));
  }
  if (!points.x.empty()) panel->layers.push_back(std::move(points));
}

// Mean and interval; `base` is the row's lower border in the panel's data, a row being 1 high. The
// mean is a stroke, but an open marker for a setting whose hue another one has, too.
void AddDot(const DotRow& row, double base, Panel* panel) {
  if (!row.mean.defined()) return;
  const double y = base + 0.64;
  Strokes strokes;
  strokes.color = row.style.line;
  strokes.width = 1.6;
  if (row.interval.defined()) {
    strokes.x = {row.interval.low};
    strokes.y = {y};
    strokes.dx = {row.interval.high - row.interval.low};
    strokes.dy = {0};
    panel->layers.push_back(strokes);
  }
  if (row.style.open) {
    panel->layers.push_back(
        Points{{row.mean.value}, {y}, row.style.line, row.style.marker, true, kMarkerRadius});
  } else {
    panel->layers.push_back(
        Strokes{{row.mean.value}, {y - 0.17}, {0}, {0.34}, row.style.line, 1.8});
  }
}

void AddRowTexts(const DotRow& row, const Columns& columns, double y, Figure* figure) {
  const bool two_lines = columns.wide && !row.remark.empty();
  figure->texts.push_back({kEdge, two_lines ? y + 0.055 : y,
                           ElideMiddle(row.label, columns.label, kTitleSize), kTitleSize,
                           row.style.text});
  if (two_lines) {
    figure->texts.push_back({kEdge, y - 0.055, ElideMiddle(row.remark, columns.label, kSmallSize),
                             kSmallSize, kSecondary});
  }
  if (!columns.wide) {
    figure->texts.push_back(
        {columns.value, y + 0.055, row.short_value, kLabelSize, kInk, Align::kRight});
    figure->texts.push_back(
        {columns.value, y - 0.055, row.short_remark, kSmallSize, kSecondary, Align::kRight});
    return;
  }
  figure->texts.push_back({columns.value, y, row.value, kValueSize, kInk});
  for (size_t i = 0; i < columns.centers.size(); ++i) {
    figure->texts.push_back(
        {columns.centers[i], y, row.columns[i], kValueSize, kInk, Align::kCenter});
  }
}

// Words on both sides of the rule at 0, where they have room.
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
    figure->texts.push_back(
        {columns.centers[i], y, dots.column_titles[i], kHeadSize, kSecondary, Align::kCenter});
  }
}

void AddGroup(const DotPlot& dots, const DotGroup& group, const Columns& columns, double row_height,
              double bottom, Figure* figure) {
  const auto rows = static_cast<double>(group.rows.size());
  Panel panel;
  panel.left = columns.left;
  panel.right = columns.right;
  panel.bottom = bottom;
  panel.top = bottom + rows * row_height;
  panel.x = AxisOf(dots, group, columns.right - columns.left);
  panel.y.high = rows;
  panel.y.line = false;
  if (dots.zero) {
    const double zero = XInches(panel, 0);
    panel.rules.push_back({zero, panel.bottom, zero, panel.top + 0.03, kInk, 0.7, {}});
  }
  for (size_t i = 0; i < group.rows.size(); ++i) {
    const double base = rows - 1 - static_cast<double>(i);
    AddSeeds(group.rows[i], dots.ratios, base, row_height, &panel);
    AddDot(group.rows[i], base, &panel);
    AddRowTexts(group.rows[i], columns, bottom + (base + 0.5) * row_height, figure);
  }
  figure->panels.push_back(std::move(panel));
}

// Heights, in inches.
struct Heights {
  double row = kRow, header = kHeader, all = 0;
};

bool EndsAxisTitle(const DotPlot& dots, size_t g) {
  return g + 1 == dots.groups.size() || dots.groups[g + 1].axis_title != dots.groups[g].axis_title;
}

Heights HeightsOf(const DotPlot& dots, bool wide, size_t footnote_lines) {
  Heights heights;
  size_t rows = 0;
  for (const DotGroup& group : dots.groups) rows += group.rows.size();
  heights.row = rows <= kRoomy ? kRow : kDenseRow;
  heights.header = wide || dots.zero ? kHeader : 0.06;
  heights.all = 0.02 + heights.header + kEdge + kFootnoteLine * static_cast<double>(footnote_lines);
  for (size_t g = 0; g < dots.groups.size(); ++g) {
    const auto own = static_cast<double>(dots.groups[g].rows.size());
    heights.all += own * heights.row + kNumbers + (g > 0 ? kGroupGap : 0) +
                   (dots.groups[g].title.empty() ? 0 : kTitleLine) +
                   (EndsAxisTitle(dots, g) ? kAxisTitle : 0);
  }
  return heights;
}

}  // namespace

absl::StatusOr<Figure> DrawDotPlot(const DotPlot& dots, double width) {
  const auto footnote = FootnoteLines(dots.footnote, width);
  const Columns columns = Arrange(dots, width);
  const Heights heights = HeightsOf(dots, columns.wide, footnote.size());
  if (heights.all > kMaxHeight) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kind: the rows of ", dots.groups.size(), " groups do not fit into this figure; allowed: ",
        "what fits into ", kMaxHeight, " inches, about 35 rows"));
  }
  Figure figure;
  figure.width = width;
  figure.height = heights.all;
  double top = heights.all - 0.02;
  for (size_t g = 0; g < dots.groups.size(); ++g) {
    const DotGroup& group = dots.groups[g];
    if (!group.title.empty()) {
      top -= kTitleLine;
      AddPanelTitle(kEdge, width - kEdge, top, group.title, "", &figure);
    }
    if (g == 0) top -= heights.header;
    const double bottom = top - heights.row * static_cast<double>(group.rows.size());
    AddGroup(dots, group, columns, heights.row, bottom, &figure);
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
  AddFootnote(footnote, &figure);
  return figure;
}

}  // namespace ablate::figure
