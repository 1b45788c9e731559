#include "server/report/figure/dot_marks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFar = 10;       // times as far as most rows: off scale
constexpr size_t kLeastRows = 3;  // for one to be far from the others

// Inches above the row's base, and of its height.
constexpr double kSeeds = 0.115, kSeedLevel = 0.037, kSeedText = 0.078;
constexpr double kMeanShare = 0.64, kMeanHalf = 0.17;
constexpr double kMeanRadius = 2, kArrowRadius = 2.1;  // of a mean: points
constexpr double kDotRadius = 1, kDotArrow = 1.5;      // of a seed: points
constexpr double kDot = 0.042;                         // room for a seed in inches
constexpr int kDotLevels = 3;
constexpr double kArrowRoom = 0.09, kTextGap = 0.03;  // inches

// Returns a row's mean, its interval's ends, and its seeds.
std::vector<double> MarksOf(const DotRow& row) {
  std::vector<double> marks;
  if (row.mean.defined()) marks.push_back(row.mean.value);
  if (row.interval.defined()) marks.insert(marks.end(), {row.interval.low, row.interval.high});
  for (const DotSeed& seed : row.seeds) marks.push_back(seed.value);
  return marks;
}

double MedianMean(const DotGroup& group) {
  std::vector<double> means;
  for (const DotRow& row : group.rows) {
    if (row.mean.defined()) means.push_back(row.mean.value);
  }
  if (means.empty()) return 0;
  std::sort(means.begin(), means.end());
  return report::SortedQuantile(means, 0.5);
}

// Returns how far from the middle a mark may lie.
double LimitOf(const DotGroup& group, double middle) {
  std::vector<double> reaches;
  for (const DotRow& row : group.rows) {
    double reach = -1;
    for (const double mark : MarksOf(row)) reach = std::max(reach, std::abs(mark - middle));
    if (reach >= 0) reaches.push_back(reach);
  }
  if (reaches.size() < kLeastRows) return kInfinity;
  std::sort(reaches.begin(), reaches.end());
  const double most = reaches[(2 * reaches.size() + 2) / 3 - 1];
  // Rows nearly equal to the baseline don't limit how far the others may lie.
  return most > 0 ? kFar * most : kInfinity;
}

bool Within(const Axis& axis, double value) { return value >= axis.low && value <= axis.high; }

// Returns +1 beyond the right end, −1 beyond the left one, 0 within.
int SideOf(const Axis& axis, double value) {
  return value > axis.high ? 1 : value < axis.low ? -1 : 0;
}

std::string NumberText(double value, int decimals, DotNumbers numbers) {
  switch (numbers) {
    case DotNumbers::kRatios:
      return report::ShownRatio(std::exp(value));
    case DotNumbers::kDifferences:
      return report::Signed(value, decimals);
    case DotNumbers::kValues:
      break;
  }
  return report::Plain(value, decimals);
}

// State while one row's marks are added.
struct Adding {
  const DotRow& row;
  DotNumbers numbers;
  RowPlace place;
  Panel* panel;
  Figure* figure;

  double mean_y() const { return place.base + kMeanShare * place.height; }
};

// Adds an arrow at the panel's edge, at a height in inches; `title` is its tooltip.
void AddArrow(int side, double y, double radius, Color color, bool open, const std::string& title,
              Panel* panel) {
  const double inside = radius * kPoint / (panel->right - panel->left);
  const double share = side > 0 ? 1 - inside : inside;
  Points arrow;
  arrow.x = {panel->x.low + share * (panel->x.high - panel->x.low)};
  arrow.y = {y};
  arrow.color = color;
  arrow.marker = side > 0 ? Marker::kTriangleRight : Marker::kTriangleLeft;
  arrow.radius = radius;
  arrow.open = open;
  if (!title.empty()) arrow.titles = {title};
  panel->layers.push_back(std::move(arrow));
}

// A range across the panel, in inches.
struct Stretch {
  double left = 0, right = 0;

  bool Meets(double from, double to) const {
    return to > left - kTextGap / 2 && from < right + kTextGap / 2;
  }
};

// Returns the range of a text beside an arrow: further inside if the rule at 0 would cross it.
Stretch BesideArrow(const Adding& adding, int side, double width) {
  const Panel& panel = *adding.panel;
  Stretch stretch;
  stretch.left = side > 0 ? panel.right - kArrowRoom - width : panel.left + kArrowRoom;
  stretch.right = stretch.left + width;
  const double zero = XInches(panel, 0);
  if (adding.numbers == DotNumbers::kValues || !stretch.Meets(zero, zero)) return stretch;
  stretch.left = side > 0 ? zero - kTextGap - width : zero + kTextGap;
  stretch.right = stretch.left + width;
  return stretch;
}

bool HasSeedAt(const Adding& adding, const Stretch& stretch) {
  return std::any_of(adding.row.seeds.begin(), adding.row.seeds.end(), [&](const DotSeed& seed) {
    const double x = XInches(*adding.panel, seed.value);
    return Within(adding.panel->x, seed.value) && stretch.Meets(x, x);
  });
}

bool HasMeanAt(const Adding& adding, const Stretch& stretch) {
  const Panel& panel = *adding.panel;
  const report::Interval& interval = adding.row.interval;
  const double mean = XInches(panel, adding.row.mean.value);
  if (adding.row.mean.defined() && stretch.Meets(mean, mean)) return true;
  return interval.defined() &&
         stretch.Meets(XInches(panel, interval.low), XInches(panel, interval.high));
}

// Adds text beside an arrow, at the height of the mean or of the seeds, unless marks would cross
// it.
void AddArrowText(const Adding& adding, int side, const std::string& text, bool of_mean) {
  const Panel& panel = *adding.panel;
  const Stretch stretch = BesideArrow(adding, side, TextWidth(text, kSmallSize));
  if (stretch.left < panel.left || stretch.right > panel.right) return;
  if (HasSeedAt(adding, stretch)) return;
  const bool beside_mean = of_mean && !HasMeanAt(adding, stretch);
  const double y = beside_mean ? adding.mean_y() : adding.place.base + kSeedText;
  adding.figure->texts.push_back({stretch.left, panel.bottom + y, text, kSmallSize, kSecondary});
}

std::string SeedTitle(const Adding& adding, const DotSeed& seed) {
  const bool ratio = adding.numbers == DotNumbers::kRatios;
  const std::string value = NumberText(seed.value, report::DecimalsFor(seed.value),
                                       ratio ? adding.numbers : DotNumbers::kValues);
  return seed.seed.has_value() ? absl::StrCat("seed ", *seed.seed, ": ", value) : "";
}

// Adds an arrow for all seeds beyond one end, with their number and the furthest one beside it,
// unless the mean is beyond that end, too.
void AddSeedArrow(const Adding& adding, int side) {
  const DotRow& row = adding.row;
  size_t beyond = 0;
  double furthest = 0;
  std::vector<std::string> titles;
  for (const DotSeed& seed : row.seeds) {
    if (SideOf(adding.panel->x, seed.value) != side) continue;
    furthest = beyond == 0 || side * (seed.value - furthest) > 0 ? seed.value : furthest;
    ++beyond;
    if (seed.seed.has_value()) titles.push_back(SeedTitle(adding, seed));
  }
  if (beyond == 0) return;
  AddArrow(side, adding.place.base + kSeedText, kDotArrow, Tint(row.style.line), false,
           absl::StrJoin(titles, ", "), adding.panel);
  if (row.mean.defined() && SideOf(adding.panel->x, row.mean.value) == side) return;
  const std::string text = NumberText(furthest, report::DecimalsFor(furthest), adding.numbers);
  AddArrowText(adding, side, beyond == 1 ? text : absl::StrCat(beyond, " to ", text), false);
}

// Adds seeds below the interval, stacked if they would overlap.
void AddSeeds(const Adding& adding) {
  const Panel& panel = *adding.panel;
  std::vector<DotSeed> seeds = adding.row.seeds;
  std::sort(seeds.begin(), seeds.end(),
            [](const DotSeed& a, const DotSeed& b) { return a.value < b.value; });
  const double apart = kDot / (panel.right - panel.left) * (panel.x.high - panel.x.low);
  std::vector<double> last(kDotLevels, -kInfinity);
  Points points;
  points.color = Tint(adding.row.style.line);
  points.radius = kDotRadius;
  for (const DotSeed& seed : seeds) {
    if (!Within(panel.x, seed.value)) continue;
    int level = 0;
    while (level + 1 < kDotLevels && seed.value - last[level] < apart) ++level;
    last[level] = seed.value;
    points.x.push_back(seed.value);
    points.y.push_back(adding.place.base + kSeeds - kSeedLevel * level);
    if (seed.seed.has_value()) points.titles.push_back(SeedTitle(adding, seed));
  }
  if (!points.x.empty()) adding.panel->layers.push_back(std::move(points));
  for (const int side : {-1, 1}) AddSeedArrow(adding, side);
}

void AddInterval(const Adding& adding) {
  const report::Interval& interval = adding.row.interval;
  if (!interval.defined()) return;
  Strokes bar;
  bar.color = adding.row.style.line;
  bar.width = 1.6;
  bar.x = {interval.low};
  bar.y = {adding.mean_y()};
  bar.dx = {interval.high - interval.low};
  bar.dy = {0};
  adding.panel->layers.push_back(std::move(bar));
  const int of_mean = SideOf(adding.panel->x, adding.row.mean.value);
  for (const double end : {interval.low, interval.high}) {
    const int side = SideOf(adding.panel->x, end);
    if (side == 0 || side == of_mean) continue;
    AddArrow(side, adding.mean_y(), kArrowRadius, adding.row.style.line, false, "", adding.panel);
  }
}

void AddMean(const Adding& adding) {
  const DotRow& row = adding.row;
  const bool hollow = row.mark == MeanMark::kHollow;
  const Color color = row.style.line;
  if (const int side = SideOf(adding.panel->x, row.mean.value); side != 0) {
    AddArrow(side, adding.mean_y(), kArrowRadius, color, hollow, "", adding.panel);
    // As in the column of values.
    const int decimals = report::DecimalsFor(row.mean.value, row.interval);
    AddArrowText(adding, side, NumberText(row.mean.value, decimals, adding.numbers), true);
    return;
  }
  if (row.mark != MeanMark::kStroke) {
    adding.panel->layers.push_back(
        Points{{row.mean.value}, {adding.mean_y()}, color, Marker::kCircle, hollow, kMeanRadius});
    return;
  }
  const double half = kMeanHalf * adding.place.height;
  adding.panel->layers.push_back(
      Strokes{{row.mean.value}, {adding.mean_y() - half}, {0}, {2 * half}, color, 1.8});
}

}  // namespace

Extent ShownMarks(const DotGroup& group, bool zero) {
  const double middle = zero ? 0 : MedianMean(group);
  const double limit = LimitOf(group, middle);
  const auto far = [&](double mark) { return std::abs(mark - middle) > limit; };
  Extent shown;
  for (const DotRow& row : group.rows) {
    if (row.mean.defined() && far(row.mean.value)) continue;
    for (const double mark : MarksOf(row)) {
      if (!far(mark)) shown.Add(mark);
    }
  }
  return shown;
}

void BeyondAxis::Add(const DotGroup& group, const Axis& axis) {
  for (const DotRow& row : group.rows) {
    const bool mean = row.mean.defined() && !Within(axis, row.mean.value);
    const report::Interval& interval = row.interval;
    const bool ends =
        interval.defined() && !(Within(axis, interval.low) && Within(axis, interval.high));
    means += mean ? 1 : 0;
    intervals += ends && !mean ? 1 : 0;
    seeds += static_cast<size_t>(
        std::count_if(row.seeds.begin(), row.seeds.end(),
                      [&](const DotSeed& seed) { return !Within(axis, seed.value); }));
  }
}

std::string BeyondAxis::Text() const {
  std::vector<std::string> parts;
  if (means > 0) parts.push_back(report::Counted(means, "mean"));
  if (intervals > 0) parts.push_back(report::Counted(intervals, "interval"));
  if (seeds > 0) parts.push_back(report::Counted(seeds, "seed"));
  if (parts.empty()) return "";
  return absl::StrCat("arrows: beyond the axis, ", report::Enumerated(parts));
}

void AddRowMarks(const DotRow& row, DotNumbers numbers, const RowPlace& place, Panel* panel,
                 Figure* figure) {
  const Adding adding{row, numbers, place, panel, figure};
  AddSeeds(adding);
  if (!row.mean.defined()) return;
  AddInterval(adding);
  AddMean(adding);
}

}  // namespace ablate::figure
