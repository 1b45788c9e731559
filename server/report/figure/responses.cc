#include "server/report/figure/responses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"

namespace ablate::figure {

ResponsePoint PointOf(const report::ComparisonRow& row) {
  ResponsePoint point;
  point.tried = true;
  point.present = row.n > 0;
  point.own = row.own;
  point.n = row.n;
  point.diverged = row.diverged;
  for (const report::SeedRun& run : row.runs) {
    if (!run.diverged && run.by_sequence.empty()) point.seeds.push_back(run);
  }
  return point;
}

namespace {

constexpr double kCountLine = 0.115;   // inches, of a line of counts
constexpr double kMaxTickLabel = 0.6;  // inches
constexpr double kDodge = 0.03;        // inches between settings at one value
constexpr double kPad = 0.06;          // of the axis's length, at least, beyond its ends
constexpr double kRing = 3.4;          // points, the radius around the baseline's marker

// Returns the padding at both ends of an axis `wide` inches long that keeps labels from reaching
// the next panel's, as a fraction of the range between.
double PadForLabels(const Responses& responses, double wide) {
  double half = 0;
  for (const std::string& label : responses.labels) {
    half = std::max(half, TextWidth(ElideMiddle(label, kMaxTickLabel, kLabelSize), kLabelSize) / 2);
  }
  const double share = std::min(half / wide, 0.25);  // of the whole axis
  return std::max(kPad, share / (1 - 2 * share));
}

// Returns the positions of the axis's values: numbers; otherwise 1, 2, 3, ….
Axis ValueAxisOf(const Responses& responses, double pad, std::vector<double>* places) {
  *places = responses.values;
  if (places->size() != responses.labels.size()) {
    places->clear();
    for (size_t i = 0; i < responses.labels.size(); ++i) {
      places->push_back(static_cast<double>(i) + 1);
    }
  }
  Extent extent;
  for (const double place : *places) extent.Add(place);
  const bool log = extent.low() > 0 && extent.high() / extent.low() >= responses.log_from;
  Axis axis = log ? LogAxis(extent, pad, 5) : LinearAxis(extent, pad, 5);
  axis.ticks.clear();
  for (size_t i = 0; i < places->size(); ++i) {
    axis.ticks.push_back({(*places)[i], responses.labels[i]});
  }
  return axis;
}

// Blanks labels that would touch the previous one, and shortens long ones.
void ThinTickLabels(Panel* panel) {
  double free = -1;
  std::stable_sort(panel->x.ticks.begin(), panel->x.ticks.end(),
                   [](const Tick& a, const Tick& b) { return a.at < b.at; });
  for (Tick& tick : panel->x.ticks) {
    tick.label = ElideMiddle(tick.label, kMaxTickLabel, kLabelSize);
    const double half = TextWidth(tick.label, kLabelSize) / 2, at = XInches(*panel, tick.at);
    if (at - half < free) {
      tick.label.clear();
    } else {
      free = at + half + 0.04;
    }
  }
}

// Returns true if an interval is drawn: not if runs diverged, because the others aren't a sample of
// all.
bool HasBar(const ResponsePoint& point) {
  return point.diverged == 0 && point.own.interval.defined();
}

Axis MetricAxis(const Responses& responses, size_t ticks) {
  Extent extent;
  for (const Response& setting : responses.settings) {
    for (const ResponsePoint& point : setting.points) {
      extent.Add(point.own.mean.value);
      if (HasBar(point)) {
        extent.Add(point.own.interval.low);
        extent.Add(point.own.interval.high);
      }
      for (const report::SeedRun& run : point.seeds) extent.Add(run.value);
    }
  }
  Axis axis = ValueAxis(extent, 0.05, ticks);
  axis.grid = true;
  return axis;
}

// Returns `value` moved by `inches` along the panel's x axis.
double Shifted(const Panel& panel, double value, double inches) {
  const double share = inches / (panel.right - panel.left);
  if (panel.x.log) return value * std::pow(panel.x.high / panel.x.low, share);
  return value + share * (panel.x.high - panel.x.low);
}

// Returns the mean for the line; NaN if runs diverged, because the mean of the others doesn't
// represent the setting.
double LineMean(const ResponsePoint& point) {
  return point.diverged > 0 ? std::numeric_limits<double>::quiet_NaN() : point.own.mean.value;
}

// Adds line, intervals and markers; a hollow marker without an interval if a seed diverged, a ring
// around the baseline's.
void AddResponse(const Response& setting, const std::vector<double>& places, const Style& style,
                 double dodge, Panel* panel) {
  Points seeds, ring, full, hollow;
  Line line;
  Strokes bars;
  seeds.color = Tint(style.line);
  seeds.radius = 0.9;
  line.color = full.color = bars.color = style.line;
  line.dash = style.dash;
  full.marker = style.marker;
  ring.color = style.line;
  ring.open = true;
  ring.radius = kRing;
  hollow.color = kWhite;
  hollow.radius = 0.95;
  for (size_t i = 0; i < setting.points.size(); ++i) {
    const ResponsePoint& point = setting.points[i];
    if (!point.tried) continue;  // the line goes on to the next value
    const double x = Shifted(*panel, places[i], dodge);
    for (const report::SeedRun& run : point.seeds) {
      seeds.x.push_back(x);
      seeds.y.push_back(run.value);
    }
    const double mean = point.own.mean.value;
    line.x.push_back(x);
    line.y.push_back(LineMean(point));
    if (!std::isfinite(mean)) continue;
    full.x.push_back(x);
    full.y.push_back(mean);
    if (point.baseline) {
      ring.x.push_back(x);
      ring.y.push_back(mean);
    }
    if (point.diverged > 0) {
      hollow.x.push_back(x);
      hollow.y.push_back(mean);
    }
    if (HasBar(point)) {
      bars.x.push_back(x);
      bars.y.push_back(point.own.interval.low);
      bars.dx.push_back(0);
      bars.dy.push_back(point.own.interval.high - point.own.interval.low);
    }
  }
  for (Layer layer :
       {Layer(seeds), Layer(line), Layer(ring), Layer(bars), Layer(full), Layer(hollow)}) {
    panel->layers.push_back(std::move(layer));
  }
}

std::string CountText(const ResponsePoint& point) {
  return absl::StrCat(point.diverged, "/", point.n);
}

// Returns the smallest distance between two of the positions, in inches.
double LeastGap(const Panel& panel, std::vector<double> places) {
  std::sort(places.begin(), places.end());
  double gap = panel.right - panel.left;
  for (size_t i = 1; i < places.size(); ++i) {
    gap = std::min(gap, XInches(panel, places[i]) - XInches(panel, places[i - 1]));
  }
  return gap;
}

double HeightOf(double width) { return width >= 5 ? 1.75 : 1.6; }

// Returns the only panel from left to right, with its axes; its height isn't set yet.
Panel PanelAcross(const Responses& responses, double width, std::vector<double>* places,
                  double* room) {
  *room = EndLabelRoom(LabelsOf(responses.settings), width);
  Panel panel;
  panel.y = MetricAxis(responses, TicksOver(HeightOf(width)));
  panel.left = LeftRoom(panel.y);
  panel.right = width - *room - 0.03;
  panel.x = ValueAxisOf(responses, kPad, places);
  return panel;
}

// Returns true if counts of diverged runs are above the values: there are some, and they fit side
// by side.
bool CountsAbove(const Responses& responses, double width) {
  if (responses.settings.size() > kMaxInOnePanel) return false;
  double widest = 0;
  for (const Response& setting : responses.settings) {
    for (const ResponsePoint& point : setting.points) {
      if (setting.diverged == 0) continue;
      widest = std::max(widest, TextWidth(CountText(point), kSmallSize));
    }
  }
  std::vector<double> places;
  double room = 0;
  const Panel panel = PanelAcross(responses, width, &places, &room);
  return widest > 0 && LeastGap(panel, places) > widest + 0.03;
}

// Adds the lines of a table above the panel: how many seeds diverged at each value.
void AddCounts(const Responses& responses, const std::vector<double>& places, const Panel& panel,
               double room, Figure* figure) {
  double y = panel.top + 0.1;
  bool first = true;
  for (auto setting = responses.settings.rbegin(); setting != responses.settings.rend();
       ++setting) {
    if (setting->diverged == 0) continue;
    const Color color = StyleOf(setting->style).text;
    for (size_t i = 0; i < places.size(); ++i) {
      const ResponsePoint& point = setting->points[i];
      if (!point.present) continue;
      const bool some = point.diverged > 0;
      figure->texts.push_back({XInches(panel, places[i]), y, some ? CountText(point) : "·",
                               kSmallSize, some ? color : kSecondary, Align::kCenter});
    }
    figure->texts.push_back({panel.right + 0.11, y,
                             ElideMiddle(setting->label, room - 0.13, kSmallSize), kSmallSize,
                             color});
    if (first) {
      figure->texts.push_back(
          {panel.left - 0.06, y, "diverged", kSmallSize, kSecondary, Align::kRight});
    }
    first = false;
    y += kCountLine;
  }
}

// Returns the footnote; `counted`: the numbers of diverged runs are above the values.
std::string FootnoteOf(const Responses& responses, bool counted) {
  bool hollow = false, ringed = false;
  size_t n = 0, diverged = 0;
  for (const Response& setting : responses.settings) {
    diverged += setting.diverged;
    for (const ResponsePoint& point : setting.points) {
      n = std::max(n, point.n);
      hollow = hollow || (point.diverged > 0 && point.own.mean.defined());
      ringed = ringed || (point.baseline && point.own.mean.defined());
    }
  }
  const bool multiples = responses.settings.size() > kMaxInOnePanel;
  std::string text = absl::StrCat(
      multiples ? responses.colours : "",
      responses.unit != report::Unit::kSeed ? "mean and 95 % interval over sequences"
      : n == 1                              ? "one seed, no interval"
               : absl::StrCat(report::MeanName(responses.scale), ", 95 % interval and seeds"));
  if (ringed) absl::StrAppend(&text, "; ring: baseline");
  if (hollow) absl::StrAppend(&text, "; hollow: some seeds diverged, mean of the others");
  if (!counted && diverged > 0) {
    absl::StrAppend(&text, "; ", report::Counted(diverged, "run"), " diverged in all");
  }
  for (const std::string& remark : responses.remarks) absl::StrAppend(&text, "; ", remark);
  return text;
}

void AddLabels(const Responses& responses, const std::vector<double>& places, const Panel& panel,
               double room, Figure* figure) {
  std::vector<EndLabel> labels;
  for (const Response& setting : responses.settings) {
    const Style style = StyleOf(setting.style);
    // The rightmost point, whatever the order of the axis's values.
    EndLabel label{setting.label,
                   -std::numeric_limits<double>::infinity(),
                   0,
                   style.line,
                   style.text,
                   LeaderDash(setting.style)};
    for (size_t i = 0; i < places.size(); ++i) {
      const report::Number& mean = setting.points[i].own.mean;
      if (!mean.defined() || places[i] <= label.x) continue;
      label.x = places[i];
      label.y = mean.value;
    }
    if (std::isfinite(label.x) && !label.text.empty()) labels.push_back(std::move(label));
  }
  AddEndLabels(panel, labels, room, figure);
}

absl::StatusOr<Figure> DrawTogether(const Responses& responses, const report::MetricName& metric,
                                    double width) {
  Figure figure;
  figure.width = width;
  const bool counted = CountsAbove(responses, width);
  const auto footnote = FootnoteLines(FootnoteOf(responses, counted), width);
  const auto lines = std::count_if(responses.settings.begin(), responses.settings.end(),
                                   [](const Response& setting) { return setting.diverged > 0; });
  std::vector<double> places;
  double room = 0;
  Panel panel = PanelAcross(responses, width, &places, &room);
  panel.bottom = kBottom + kFootnoteLine * static_cast<double>(footnote.size());
  panel.top = panel.bottom + HeightOf(width);
  figure.height = panel.top + 0.12 + (counted ? kCountLine * static_cast<double>(lines) : 0);
  ThinTickLabels(&panel);
  const auto settings = static_cast<double>(responses.settings.size());
  const double dodge = std::min(kDodge, LeastGap(panel, places) / settings);
  for (size_t s = responses.settings.size(); s-- > 0;) {
    const Response& setting = responses.settings[s];
    AddResponse(setting, places, StyleOf(setting.style),
                dodge * (static_cast<double>(s) - (settings - 1) / 2), &panel);
  }
  AddXTitle(panel.left, panel.right, panel.bottom - 0.32, responses.axis, &figure);
  AddYTitle(panel.bottom, panel.top, AxisTitle(metric), &figure);
  AddLabels(responses, places, panel, room, &figure);
  if (counted) AddCounts(responses, places, panel, room, &figure);
  AddFootnote(footnote, &figure);
  figure.panels.push_back(std::move(panel));
  return figure;
}

// Adds another setting's line, and dots at means that no line goes through.
void AddMeanLine(const Response& setting, const std::vector<double>& places, Color color,
                 Panel* panel) {
  constexpr double kSeedDot = 0.7;  // points
  Line line;
  line.color = color;
  line.width = 0.5;
  Points alone;
  std::vector<double> means;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!setting.points[i].tried) continue;
    line.x.push_back(places[i]);
    line.y.push_back(LineMean(setting.points[i]));
    means.push_back(setting.points[i].own.mean.value);
  }
  alone.color = color;
  alone.radius = kSeedDot;
  const auto joined = [&](size_t i) { return i < line.y.size() && std::isfinite(line.y[i]); };
  for (size_t i = 0; i < line.x.size(); ++i) {
    // Before the first one there is no point either: i - 1 is then beyond the last.
    if (joined(i) && (joined(i - 1) || joined(i + 1))) continue;
    alone.x.push_back(line.x[i]);
    alone.y.push_back(means[i]);
  }
  panel->layers.push_back(std::move(line));
  if (!alone.x.empty()) panel->layers.push_back(std::move(alone));
}

absl::StatusOr<Figure> DrawMultiples(const Responses& responses, const report::MetricName& metric,
                                     double width) {
  const auto footnote = FootnoteLines(FootnoteOf(responses, false), width);
  const std::vector<Response>& settings = responses.settings;
  const auto is_baseline = [&](const Response& setting) {
    return responses.one_baseline && setting.style == 0;
  };
  const Axis y = MetricAxis(responses, TicksOver(SmallMultiples::kPanelHeight));
  SmallMultiples grid(width, LeftRoom(y), LabelsOf(settings), 1, false, footnote);
  RETURN_IF_ERROR(grid.Check());
  for (size_t own = 0; own < settings.size(); ++own) {
    Panel panel = grid.PanelAt(0, own);
    std::vector<double> places;
    panel.x = ValueAxisOf(responses, PadForLabels(responses, panel.right - panel.left), &places);
    panel.y = y;
    ThinTickLabels(&panel);
    for (const Response& setting : settings) {
      if (&setting == &settings[own]) continue;
      AddMeanLine(setting, places, is_baseline(setting) ? kInk : kOthers, &panel);
    }
    const bool baseline = is_baseline(settings[own]);
    Style style;
    style.line = baseline ? kInk : kOwn;
    AddResponse(settings[own], places, style, 0, &panel);
    grid.Add(std::move(panel), own, baseline ? kInk : kOwnText);
  }
  grid.TitleAxes(0, responses.axis, AxisTitle(metric));
  return grid.Finish();
}

// Returns the data without settings that have no run, which it names in the remarks: a panel of
// such a setting would show other settings' lines under its name. All of them if none has a run.
Responses DrawnPart(const Responses& responses) {
  Responses drawn = responses;
  drawn.settings.clear();
  std::vector<LeftOutRuns> without;
  for (const Response& setting : responses.settings) {
    const bool runs = std::any_of(setting.points.begin(), setting.points.end(),
                                  [](const ResponsePoint& point) { return point.n > 0; });
    if (runs) drawn.settings.push_back(setting);
    if (!runs) without.push_back({setting.label, true});
  }
  if (drawn.settings.empty()) return responses;
  if (!without.empty()) drawn.remarks.push_back(FootnoteOf({}, without, ""));
  return drawn;
}

std::string ResponsesCsv(const Responses& responses) {
  std::string csv = "axis,setting,value,seed,metric,low,high,n,diverged\n";
  for (const Response& setting : responses.settings) {
    for (size_t i = 0; i < setting.points.size(); ++i) {
      const ResponsePoint& point = setting.points[i];
      if (!point.present) continue;
      const auto add = [&](const auto&... fields) {
        AddCsvRow(&csv, responses.axis, setting.label, responses.labels[i], fields...);
      };
      const report::Interval& interval = point.own.interval;
      add("", point.own.mean.value, interval.low, interval.high, point.n, point.diverged);
      for (const report::SeedRun& run : point.seeds) add(run.seed, run.value, "", "", "", "");
    }
  }
  return csv;
}

// Returns "pre 2.40 at 0.004 and 2.45 at 0.01; post none".
std::string MeansText(const Responses& responses) {
  constexpr size_t kNamed = 12;
  std::vector<std::string> settings;
  for (const Response& setting : responses.settings) {
    std::vector<std::string> means;
    for (size_t i = 0; i < setting.points.size(); ++i) {
      const report::Number& mean = setting.points[i].own.mean;
      if (!mean.defined()) continue;
      means.push_back(absl::StrCat(report::Plain(mean.value), " at ", responses.labels[i]));
    }
    settings.push_back(absl::StrCat(report::Listed(setting.label), setting.label.empty() ? "" : " ",
                                    means.empty() ? "none" : report::Enumerated(means, kNamed)));
  }
  const size_t shown = std::min(settings.size(), kNamed);
  const size_t more = settings.size() - shown;
  settings.resize(shown);
  return absl::StrCat(absl::StrJoin(settings, "; "),
                      more > 0 ? absl::StrCat("; and ", more, " more") : "");
}

}  // namespace

void SortByValue(Responses* responses) {
  std::vector<size_t> order(responses->values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [responses](size_t a, size_t b) {
    return responses->values[a] < responses->values[b];
  });
  if (order.empty()) return;
  const auto sort = [&order](auto* list) {
    auto sorted = *list;
    for (size_t i = 0; i < order.size(); ++i) sorted[i] = (*list)[order[i]];
    *list = std::move(sorted);
  };
  sort(&responses->values);
  sort(&responses->labels);
  for (Response& setting : responses->settings) sort(&setting.points);
}

absl::StatusOr<Drawing> DrawResponses(const absl::StatusOr<Responses>& responses,
                                      const Input& input) {
  if (!responses.ok()) return responses.status();
  const report::MetricName metric = input.comparison->Metric();
  const Responses drawn = DrawnPart(*responses);
  ASSIGN_OR_RETURN(auto figure, drawn.settings.size() > kMaxInOnePanel
                                    ? DrawMultiples(drawn, metric, input.width)
                                    : DrawTogether(drawn, metric, input.width));
  Drawing drawing;
  drawing.figure = std::move(figure);
  const std::string over = absl::StrCat(metric.text, " over ", responses->axis);
  drawing.figure.title = absl::StrCat(input.title, ": ", over);
  drawing.figure.description = absl::StrCat("Means of ", over, ": ", MeansText(*responses), ".");
  drawing.csv = ResponsesCsv(*responses);
  return drawing;
}

std::string ResponsesCaption(const Responses& responses, double width) {
  std::string text =
      absl::StrCat(report::MeanName(responses.scale), " and 95 % interval at each value tried");
  if (CountsAbove(responses, width)) {
    absl::StrAppend(&text, "; numbers above: runs that diverged");
  }
  bool hollow = false;
  for (const Response& setting : responses.settings) {
    for (const ResponsePoint& point : setting.points) {
      hollow = hollow || (point.diverged > 0 && point.own.mean.defined());
    }
  }
  return absl::StrCat(text, hollow ? ". Hollow point: a run diverged there, so it has no interval "
                                     "and no line."
                                   : ".");
}

}  // namespace ablate::figure
