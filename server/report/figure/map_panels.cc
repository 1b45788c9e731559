#include "server/report/figure/map_panels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr double kMaxMapsHeight = 9;  // of a page
constexpr double kMostSide = 2.3;     // of a panel
constexpr double kMapGap = 0.14;      // between panels
constexpr double kBarGap = 0.1;       // from the last panel to the bar
constexpr double kBarWidth = 0.1;
constexpr double kBarRoom = 0.62;    // both, and the bar's numbers
constexpr double kNumberGap = 0.01;  // between numbers of neighbouring cells
constexpr double kTicksApart = 0.02;
constexpr double kHeadingLine = 0.15;
constexpr double kUprightLine = 0.1;  // room for a label that is written upwards

struct Layout {
  double left = kLeft;
  size_t columns = 1, rows = 1;
  double side = 1;           // of a panel
  bool turned = false;       // labels of x are written upwards
  double foot = 0;           // below the lowest panels
  double room = 1;           // for a title above one panel
  size_t lines = 1;          // of a panel's title
  double title = 0;          // height of the titles above a panel
  std::vector<bool> headed;  // rows with a heading: the label of several panels
  double height = 1;

  // Returns the height of a row's headings.
  double HeadingOf(size_t row) const { return headed[row] ? kHeadingLine : 0; }
};

constexpr double kTitleText = kLineHeight * kLabelSize * kPoint;  // a line of a panel's title

// Returns true if panels have places, so that their labels are headings.
bool HasPlaces(const std::vector<MapPanel>& panels) {
  return std::any_of(panels.begin(), panels.end(),
                     [](const MapPanel& map) { return !map.place.empty(); });
}

// Returns true for a panel whose label differs from that of the panel before.
bool StartsGroup(const std::vector<MapPanel>& panels, size_t index) {
  return index == 0 || panels[index].label != panels[index - 1].label;
}

// Returns at most so many lines of a panel's title.
std::vector<std::string> TitleOf(const MapPanel& map, double room, size_t most) {
  const std::string& title = map.place.empty() ? map.label : map.place;
  return NameLines(title, room, kLabelSize, most, /*bold=*/true);
}

// Returns the width of the widest label of an x axis.
double WidestLabel(const std::vector<MapPanel>& panels) {
  double widest = 0;
  for (const MapPanel& map : panels) {
    for (const Tick& tick : map.x.ticks) {
      widest = std::max(widest, TextWidth(tick.label, kLabelSize));
    }
  }
  return widest;
}

// Returns true if words at an x axis would touch if they were written horizontally, and take less
// of it if they are written upwards.
bool TurnsLabels(const std::vector<MapPanel>& panels, double side) {
  if (WidestLabel(panels) <= kUprightLine) return false;
  return std::any_of(panels.begin(), panels.end(), [side](const MapPanel& map) {
    const double cell = side / (map.x.high - map.x.low);
    return map.texts && std::any_of(map.x.ticks.begin(), map.x.ticks.end(), [&](const Tick& tick) {
             return TextWidth(tick.label, kLabelSize) + kTicksApart > cell;
           });
  });
}

// Sets the heights that the titles' lines and the headings give.
void SetHeight(Layout* layout) {
  layout->title = kTitleLine + kTitleText * static_cast<double>(layout->lines - 1);
  layout->height = layout->foot;
  for (size_t row = 0; row < layout->rows; ++row) {
    layout->height += layout->side + layout->title + layout->HeadingOf(row);
  }
}

// Returns the layout of the first `count` panels in so many columns. `bar` is the left end of the
// bar's title, from the bar's.
Layout LayoutIn(size_t columns, double width, const std::vector<MapPanel>& panels, size_t count,
                size_t footnote, double bar) {
  Layout layout;
  for (const MapPanel& panel : panels) layout.left = std::max(layout.left, LeftRoom(panel.y));
  layout.columns = columns;
  layout.rows = (count + columns - 1) / columns;
  const auto across = static_cast<double>(columns);
  layout.side = std::min((width - layout.left - kBarRoom - kEdge - kMapGap * (across - 1)) / across,
                         kMostSide);
  layout.turned = TurnsLabels(panels, layout.side);
  layout.foot = kBottom + kFootnoteLine * static_cast<double>(footnote);
  if (layout.turned) layout.foot += std::max(0.0, WidestLabel(panels) - kUprightLine);
  // Up to the next panel's title; the last column's up to the scale's title.
  constexpr double kTitlesApart = 0.06;
  layout.room = layout.side - kTitlesApart + std::min(kMapGap, kBarGap + bar);
  layout.headed.resize(layout.rows);
  for (size_t i = 0; i < count; ++i) {
    layout.lines = std::max(layout.lines, TitleOf(panels[i], layout.room, 2).size());
    if (HasPlaces(panels) && StartsGroup(panels, i)) layout.headed[i / columns] = true;
  }
  SetHeight(&layout);
  if (layout.height > kMaxMapsHeight) layout.lines = 1;  // cuts names rather than fail
  SetHeight(&layout);
  return layout;
}

// Returns the layout of the first `count` panels; `wanted` columns as in DrawMaps.
Layout LayoutOf(double width, const std::vector<MapPanel>& panels, size_t count, size_t wanted,
                size_t footnote, double bar) {
  if (wanted == 0) {
    const size_t most = width >= 5 ? 4 : 2, rows = (count + most - 1) / most;
    return LayoutIn((count + rows - 1) / rows, width, panels, count, footnote, bar);
  }
  constexpr double kLeastPitch = 0.5;  // inches
  const auto room = static_cast<size_t>(width / kLeastPitch);
  size_t columns = std::min(wanted, room);
  Layout layout = LayoutIn(columns, width, panels, count, footnote, bar);
  while (layout.height > kMaxMapsHeight && columns + wanted <= room) {
    columns += wanted;
    layout = LayoutIn(columns, width, panels, count, footnote, bar);
  }
  return layout;
}

absl::Status CheckFits(const std::vector<MapPanel>& panels, double width, size_t columns,
                       size_t footnote, double bar, const std::string& remedy) {
  size_t cells = 0;
  for (const MapPanel& panel : panels) cells += panel.values.size();
  if (cells > kMaxCells) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kind: maps of ", cells, " cells don't fit into this figure; expected at most ", kMaxCells,
        ". ", remedy));
  }
  const auto fits = [&](size_t count) {
    return LayoutOf(width, panels, count, columns, footnote, bar).height <= kMaxMapsHeight;
  };
  if (fits(panels.size())) return absl::OkStatus();
  size_t most = panels.size();
  while (most > 1 && !fits(most)) --most;
  return absl::InvalidArgumentError(
      absl::StrCat("kind: ", panels.size(), " maps don't fit into this figure; expected at most ",
                   most, " at this width"));
}

// Returns the position of a value on the scale, 0 to 1; NaN stays.
double ShareOf(const ColorScale& scale, double value) {
  const Axis& axis = scale.axis;
  const double share = axis.log ? std::log(value / axis.low) / std::log(axis.high / axis.low)
                                : (value - axis.low) / (axis.high - axis.low);
  if (std::isnan(share)) return share;
  const double clamped = std::clamp(share, 0.0, 1.0);
  return scale.root ? std::sqrt(clamped) : clamped;
}

Color ColorAt(const ColorScale& scale, double share) {
  return scale.diverging ? DivergingColor(share) : MapColor(share);
}

// Returns true if text on the colour at this position must be dark.
bool IsBright(const ColorScale& scale, double share) {
  constexpr double kPale = 0.3;  // distance from the middle of a diverging scale
  return scale.diverging ? std::abs(share - 0.5) < kPale : share > kBright;
}

// Returns "0.83", "1", "−0.02".
std::string CellText(double value) {
  if (value == std::round(value)) return absl::StrFormat("%d", std::lround(value));
  return report::Plain(value, 2);
}

// Returns true if the numbers of all maps that show them fit into their cells.
bool NumbersFit(const std::vector<MapPanel>& maps, double side) {
  return std::all_of(maps.begin(), maps.end(), [side](const MapPanel& map) {
    if (!map.numbers) return true;
    const double cell = side / static_cast<double>(map.x_edges.size() - 1);
    const double height = side / static_cast<double>(map.y_edges.size() - 1);
    if (height < kSmallSize * kPoint) return false;
    return std::all_of(map.values.begin(), map.values.end(), [cell](double value) {
      return !std::isfinite(value) || TextWidth(CellText(value), kSmallSize) + kNumberGap <= cell;
    });
  });
}

void AddNumbers(const MapPanel& map, const ColorScale& scale, const Panel& panel, Figure* figure) {
  const size_t columns = map.x_edges.size() - 1;
  for (size_t i = 0; i < map.values.size(); ++i) {
    if (!std::isfinite(map.values[i])) continue;
    const size_t row = i / columns, column = i % columns;
    const double x = XInches(panel, (map.x_edges[column] + map.x_edges[column + 1]) / 2);
    const double y = YInches(panel, (map.y_edges[row] + map.y_edges[row + 1]) / 2);
    const bool dark = IsBright(scale, ShareOf(scale, map.values[i]));
    figure->texts.push_back(
        {x, y, CellText(map.values[i]), kSmallSize, dark ? kInk : kWhite, Align::kCenter});
  }
}

void AddFrame(const Panel& panel, Figure* figure) {
  const double xs[] = {panel.left, panel.right}, ys[] = {panel.bottom, panel.top};
  for (const double y : ys) {
    figure->rules.push_back({panel.left, y, panel.right, y, kAxisInk, 0.6, {}});
  }
  for (const double x : xs) {
    figure->rules.push_back({x, panel.bottom, x, panel.top, kAxisInk, 0.6, {}});
  }
}

// Keeps every second, fifth, tenth, … tick, as many as fit without labels touching. `extent_of`
// returns the inches that a label takes along the axis, which has `inches` in all.
void ThinTicks(double inches, const std::function<double(const std::string&)>& extent_of,
               Axis* axis) {
  const double unit = inches / (axis->high - axis->low);
  const std::vector<Tick> all = std::move(axis->ticks);
  const auto fits = [&](size_t stride) {
    for (size_t i = stride; i < all.size(); i += stride) {
      const Tick &one = all[i - stride], &next = all[i];
      const double room = std::abs(next.at - one.at) * unit;
      if ((extent_of(one.label) + extent_of(next.label)) / 2 + kTicksApart > room) return false;
    }
    return true;
  };
  size_t stride = 1;
  for (const size_t wider : {2, 5, 10, 20, 50, 100, 200}) {
    if (!fits(stride)) stride = wider;
  }
  axis->ticks.clear();
  for (size_t i = 0; i < all.size(); i += stride) axis->ticks.push_back(all[i]);
}

// Writes the labels of x upwards, below their ticks.
void TurnLabels(Panel* panel, Figure* figure) {
  constexpr double kBelow = 0.06;  // from the axis to the end of a label
  for (Tick& tick : panel->x.ticks) {
    if (tick.label.empty()) continue;
    const double half = TextWidth(tick.label, kLabelSize) / 2;
    figure->texts.push_back({XInches(*panel, tick.at), panel->bottom - kBelow - half, tick.label,
                             kLabelSize, kInk, Align::kCenter, false, true});
    tick.label.clear();
  }
}

// Adds a panel's title, and the heading of the panels that share its label.
void AddTitles(const std::vector<MapPanel>& panels, size_t index, const Layout& layout,
               const Panel& panel, Figure* figure) {
  const auto add = [&](double y, const std::string& text) {
    figure->texts.push_back(
        {panel.left, y, text, kLabelSize, panels[index].color, Align::kLeft, true});
  };
  const std::vector<std::string> lines = TitleOf(panels[index], layout.room, layout.lines);
  double y = panel.top + 0.1 + kTitleText * static_cast<double>(lines.size() - 1);
  for (const std::string& line : lines) {
    add(y, line);
    y -= kTitleText;
  }
  if (!HasPlaces(panels) || !StartsGroup(panels, index)) return;
  const size_t next_row = (index / layout.columns + 1) * layout.columns;
  size_t end = index + 1;
  while (end < next_row && end < panels.size() && !StartsGroup(panels, end)) ++end;
  // Up to the next heading, or the end of the row.
  if (end == panels.size()) end = next_row;
  const double room = layout.room + (layout.side + kMapGap) * static_cast<double>(end - index - 1);
  add(panel.top + layout.title - 0.1 + kHeadingLine,
      ElideMiddle(panels[index].label, room, kLabelSize, true));
}

void BlankLabels(Axis* axis) {
  for (Tick& tick : axis->ticks) tick.label.clear();
}

// Blanks horizontal numbers that would reach into a neighbour.
void BlankBetween(bool before, bool behind, Panel* panel) {
  for (Tick& tick : panel->x.ticks) {
    const double at = XInches(*panel, tick.at), half = TextWidth(tick.label, kLabelSize) / 2;
    const bool left = before && at - half < panel->left - kMapGap / 3;
    const bool right = behind && at + half > panel->right + kMapGap / 3;
    if (left || right) tick.label.clear();
  }
}

std::string BarTitle(const ColorScale& scale) {
  return ElideMiddle(scale.title, kBarRoom - kBarGap + kBarWidth, kLabelSize);
}

// Returns the left end of the bar's title, from the bar's: above it, but not beyond the figure.
double BarTitleAt(const std::string& title) {
  return std::min(0.0, kBarRoom - kBarGap - TextWidth(title, kLabelSize));
}

// Adds the scale, with its numbers at the right.
void AddBar(const ColorScale& scale, double left, double bottom, double top, Figure* figure) {
  constexpr size_t kSteps = 128;
  Panel bar;
  bar.left = left;
  bar.right = left + kBarWidth;
  bar.bottom = bottom;
  bar.top = top;
  bar.x.line = bar.y.line = false;
  Cells cells;
  cells.x = {0, 1};
  for (size_t i = 0; i <= kSteps; ++i) {
    cells.y.push_back(static_cast<double>(i) / kSteps);
    if (i < kSteps) {
      cells.colors.push_back(ColorAt(scale, (static_cast<double>(i) + 0.5) / kSteps));
    }
  }
  bar.layers.push_back(std::move(cells));
  AddFrame(bar, figure);
  for (const Tick& tick : scale.axis.ticks) {
    const double y = bottom + ShareOf(scale, tick.at) * (top - bottom);
    figure->rules.push_back({bar.right, y, bar.right + 0.035, y, kAxisInk, 0.6, {}});
    figure->texts.push_back({bar.right + 0.06, y, tick.label, kLabelSize, kInk});
  }
  figure->panels.push_back(std::move(bar));
  const std::string title = BarTitle(scale);
  figure->texts.push_back({left + BarTitleAt(title), top + 0.1, title, kLabelSize, kInk});
}

}  // namespace

Axis CellsAxis(const std::vector<std::string>& names, bool down) {
  Axis axis;
  axis.low = 0;
  axis.high = static_cast<double>(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const double at = static_cast<double>(i) + 0.5;
    axis.ticks.push_back({down ? axis.high - at : at, names[i]});
  }
  return axis;
}

absl::StatusOr<Figure> DrawMaps(const std::vector<MapPanel>& panels, const ColorScale& scale,
                                const MapWords& words, double width, size_t columns) {
  const std::vector<std::string> footnote = FootnoteLines(words.footnote, width);
  const double bar = BarTitleAt(BarTitle(scale));
  RETURN_IF_ERROR(CheckFits(panels, width, columns, footnote.size(), bar, words.remedy));
  const Layout layout = LayoutOf(width, panels, panels.size(), columns, footnote.size(), bar);
  Figure figure;
  figure.width = width;
  figure.height = layout.height;
  const double top = layout.height - layout.title - layout.HeadingOf(0);  // of the first panels
  double row_top = top;
  const bool numbers_fit = NumbersFit(panels, layout.side);
  double right = layout.left;
  for (size_t i = 0; i < panels.size(); ++i) {
    const MapPanel& map = panels[i];
    const size_t row = i / layout.columns, column = i % layout.columns;
    Panel panel;
    panel.left = layout.left + (layout.side + kMapGap) * static_cast<double>(column);
    panel.right = panel.left + layout.side;
    if (row > 0 && column == 0) row_top -= layout.side + layout.title + layout.HeadingOf(row);
    panel.top = row_top;
    panel.bottom = panel.top - layout.side;
    panel.x = map.x;
    panel.y = map.y;
    constexpr double kHeight = 0.8 * kLabelSize * kPoint;  // part of a label above its line
    ThinTicks(
        layout.side,
        [&layout](const std::string& label) {
          return layout.turned ? kUprightLine - kTicksApart : TextWidth(label, kLabelSize);
        },
        &panel.x);
    ThinTicks(
        layout.side, [](const std::string&) { return kHeight; }, &panel.y);
    // Only the left column and the lowest panels have numbers.
    if (i + layout.columns < panels.size()) BlankLabels(&panel.x);
    if (column > 0) BlankLabels(&panel.y);
    if (layout.turned) TurnLabels(&panel, &figure);
    BlankBetween(column > 0, column + 1 < layout.columns, &panel);
    Cells cells{map.x_edges, map.y_edges, {}};
    for (const double value : map.values)
      cells.colors.push_back(ColorAt(scale, ShareOf(scale, value)));
    panel.layers.push_back(std::move(cells));
    panel.layers.insert(panel.layers.end(), map.over.begin(), map.over.end());
    AddFrame(panel, &figure);
    if (map.numbers && numbers_fit) AddNumbers(map, scale, panel, &figure);
    AddTitles(panels, i, layout, panel, &figure);
    right = std::max(right, panel.right);
    figure.panels.push_back(std::move(panel));
  }
  AddBar(scale, right + kBarGap, layout.foot, top, &figure);
  const double title = kFootnoteLine * static_cast<double>(footnote.size()) + kBottom - 0.32;
  AddXTitle(layout.left, right, title, words.x, &figure);
  AddYTitle(layout.foot, top, words.y, &figure);
  AddFootnote(footnote, &figure);
  return figure;
}

}  // namespace ablate::figure
