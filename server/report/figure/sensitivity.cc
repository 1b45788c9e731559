#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::MatchedBlock;

// One setting at one value of the axis.
struct ResponsePoint {
  bool present = false;
  report::Summary own;                 // over the seeds that converged
  std::vector<report::SeedRun> seeds;  // that converged
  size_t n = 0, diverged = 0;
};

struct Response {
  std::string label;
  size_t style = 0;
  std::vector<ResponsePoint> points;  // one a label of the axis
  size_t diverged = 0;                // in all
};

struct SensitivityData {
  std::string axis;
  std::vector<std::string> labels;
  std::vector<double> values;  // numbers of the labels; empty if they are not numbers
  std::vector<Response> settings;
  // At which values of the other tuned axes: "warmup 100"; empty if there are none.
  std::string others;
};

// Values of the tuned axes but the first that all points share: the base spec's.
std::vector<std::string> SharedLabels(const Comparison& comparison) {
  const MatchedBlock& block = comparison.matched[comparison.reference.value_or(0)];
  return {block.labels.begin() + 1, block.labels.end()};
}

ResponsePoint PointOf(const report::ComparisonRow& row) {
  ResponsePoint point;
  point.present = row.n > 0;
  point.own = row.own;
  point.n = row.n;
  point.diverged = row.diverged;
  for (const report::SeedRun& run : row.runs) {
    if (!run.diverged) point.seeds.push_back(run);
  }
  return point;
}

void AddBlock(const MatchedBlock& block, size_t position, SensitivityData* sensitivity) {
  for (const report::ComparisonRow& row : block.rows) {
    for (Response& setting : sensitivity->settings) {
      if (setting.label != row.mark) continue;
      setting.points[position] = PointOf(row);
      setting.diverged += row.diverged;
    }
  }
}

std::string OthersText(const Comparison& comparison, const std::vector<std::string>& labels) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < labels.size(); ++i) {
    parts.push_back(absl::StrCat(comparison.tuned_axes[i + 1], " ", labels[i]));
  }
  return absl::StrJoin(parts, ", ");
}

// FAILED_PRECONDITION if no axis is tuned, or its values are chosen by something else than what is
// compared.
absl::StatusOr<SensitivityData> DataOf(const Input& input) {
  const Comparison& comparison = *input.comparison;
  if (!comparison.choice_key.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("kind: sensitivity draws metrics of training and evaluations, and ",
                     report::NameOfMetric(comparison.key).text, " is a number of an analysis"));
  }
  const auto axis =
      std::find_if(input.axes.begin(), input.axes.end(), [&](const report::Axis& one) {
        return !comparison.tuned_axes.empty() && one.name == comparison.tuned_axes[0];
      });
  if (axis == input.axes.end() || comparison.matched.empty()) {
    return absl::FailedPreconditionError(
        "kind: sensitivity is drawn over a tuned axis, and the experiment has none; an axis is "
        "tuned with `tune: true`");
  }
  SensitivityData sensitivity;
  sensitivity.axis = axis->name;
  sensitivity.labels = axis->labels;
  sensitivity.values = axis->values;
  const std::vector<size_t> styles = StyleIndices(comparison);
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    sensitivity.settings.push_back(
        {comparison.rows[i].mark, styles[i], std::vector<ResponsePoint>(axis->labels.size()), 0});
  }
  const std::vector<std::string> shared = SharedLabels(comparison);
  for (const MatchedBlock& block : comparison.matched) {
    if (!std::equal(shared.begin(), shared.end(), block.labels.begin() + 1)) continue;
    const auto label = std::find(axis->labels.begin(), axis->labels.end(), block.labels[0]);
    if (label == axis->labels.end()) continue;
    AddBlock(block, static_cast<size_t>(label - axis->labels.begin()), &sensitivity);
  }
  sensitivity.others = OthersText(comparison, shared);
  return sensitivity;
}

// axis,setting,value,seed,metric,low,high,n,diverged
std::string SensitivityCsv(const SensitivityData& sensitivity) {
  std::string csv = "axis,setting,value,seed,metric,low,high,n,diverged\n";
  const std::string axis = CsvText(sensitivity.axis);
  for (const Response& setting : sensitivity.settings) {
    for (size_t i = 0; i < setting.points.size(); ++i) {
      const ResponsePoint& point = setting.points[i];
      if (!point.present) continue;
      const std::string label = CsvText(setting.label), value = CsvText(sensitivity.labels[i]);
      AddCsvRow({axis, label, value, "", CsvNumber(point.own.mean.value),
                 CsvNumber(point.own.interval.low), CsvNumber(point.own.interval.high),
                 absl::StrCat(point.n), absl::StrCat(point.diverged)},
                &csv);
      for (const report::SeedRun& run : point.seeds) {
        AddCsvRow(
            {axis, label, value, absl::StrCat(run.seed), CsvNumber(run.value), "", "", "", ""},
            &csv);
      }
    }
  }
  return csv;
}

constexpr double kCountLine = 0.115;   // inches, of a line of counts
constexpr double kMaxTickLabel = 0.6;  // inches
constexpr double kDodge = 0.03;        // inches between settings at one value
constexpr double kPad = 0.06;          // of the axis's length, at least, beyond its ends

// Room beyond both ends of an axis `wide` inches long in which their labels don't reach the next
// panel's, as a share of what is between them.
double PadForLabels(const SensitivityData& sensitivity, double wide) {
  double half = 0;
  for (const std::string& label : sensitivity.labels) {
    half = std::max(half, TextWidth(ElideMiddle(label, kMaxTickLabel, kLabelSize), kLabelSize) / 2);
  }
  const double share = std::min(half / wide, 0.25);  // of the whole axis
  return std::max(kPad, share / (1 - 2 * share));
}

// Places of the axis's values: numbers, on a logarithmic axis where they span a factor of 5; else
// 1, 2, 3, ….
Axis ValueAxisOf(const SensitivityData& sensitivity, double pad, std::vector<double>* places) {
  *places = sensitivity.values;
  if (places->size() != sensitivity.labels.size()) {
    places->clear();
    for (size_t i = 0; i < sensitivity.labels.size(); ++i) {
      places->push_back(static_cast<double>(i) + 1);
    }
  }
  Extent extent;
  for (const double place : *places) extent.Add(place);
  const bool log = extent.low() > 0 && extent.high() / extent.low() >= 5;
  Axis axis = log ? LogAxis(extent, pad, 5) : LinearAxis(extent, pad, 5);
  axis.ticks.clear();
  for (size_t i = 0; i < places->size(); ++i) {
    axis.ticks.push_back({(*places)[i], sensitivity.labels[i]});
  }
  return axis;
}

// Blanks labels that would touch the one before, and shortens long ones.
void ThinTickLabels(Panel* panel) {
  double free = -1;
  std::stable_sort(panel->x.ticks.begin(), panel->x.ticks.end(),
                   [](const Tick& a, const Tick& b) { return a.at < b.at; });
  for (Tick& tick : panel->x.ticks) {
    tick.label = ElideMiddle(report::ShownValue(tick.label), kMaxTickLabel, kLabelSize);
    const double half = TextWidth(tick.label, kLabelSize) / 2, at = XInches(*panel, tick.at);
    if (at - half < free) {
      tick.label.clear();
    } else {
      free = at + half + 0.04;
    }
  }
}

Axis MetricAxis(const SensitivityData& sensitivity, size_t ticks) {
  Extent extent;
  for (const Response& setting : sensitivity.settings) {
    for (const ResponsePoint& point : setting.points) {
      extent.Add(point.own.mean.value);
      extent.Add(point.own.interval.low);
      extent.Add(point.own.interval.high);
      for (const report::SeedRun& run : point.seeds) extent.Add(run.value);
    }
  }
  Axis axis = ValueAxis(extent, 0.05, ticks);
  axis.grid = true;
  return axis;
}

// `value` moved by `inches` along the panel's x axis.
double Shifted(const Panel& panel, double value, double inches) {
  const double share = inches / (panel.right - panel.left);
  if (panel.x.log) return value * std::pow(panel.x.high / panel.x.low, share);
  return value + share * (panel.x.high - panel.x.low);
}

// Line, intervals and markers; a hollow marker without an interval where a seed diverged.
void AddResponse(const Response& setting, const std::vector<double>& places, const Style& style,
                 double dodge, Panel* panel) {
  Points seeds, full, hollow;
  Line line;
  Strokes bars;
  seeds.color = Tint(style.line);
  seeds.radius = 0.9;
  line.color = full.color = bars.color = style.line;
  line.dash = style.dash;
  full.marker = style.marker;
  full.open = style.open;
  hollow.color = kWhite;
  hollow.radius = 0.95;
  for (size_t i = 0; i < setting.points.size(); ++i) {
    const ResponsePoint& point = setting.points[i];
    const double x = Shifted(*panel, places[i], dodge);
    for (const report::SeedRun& run : point.seeds) {
      seeds.x.push_back(x);
      seeds.y.push_back(run.value);
    }
    const double mean = point.own.mean.value;
    line.x.push_back(x);
    line.y.push_back(mean);
    if (!std::isfinite(mean)) continue;
    full.x.push_back(x);
    full.y.push_back(mean);
    if (point.diverged > 0) {
      hollow.x.push_back(x);
      hollow.y.push_back(mean);
    } else if (point.own.interval.defined()) {
      bars.x.push_back(x);
      bars.y.push_back(point.own.interval.low);
      bars.dx.push_back(0);
      bars.dy.push_back(point.own.interval.high - point.own.interval.low);
    }
  }
  for (Layer layer : {Layer(seeds), Layer(line), Layer(bars), Layer(full), Layer(hollow)}) {
    panel->layers.push_back(std::move(layer));
  }
}

// The lines of a table above the panel: how many seeds diverged at each value.
void AddCounts(const SensitivityData& sensitivity, const std::vector<double>& places,
               const Panel& panel, double room, Figure* figure) {
  double y = panel.top + 0.1;
  bool first = true;
  for (auto setting = sensitivity.settings.rbegin(); setting != sensitivity.settings.rend();
       ++setting) {
    if (setting->diverged == 0) continue;
    const Color color = StyleOf(setting->style).text;
    for (size_t i = 0; i < places.size(); ++i) {
      const ResponsePoint& point = setting->points[i];
      const bool some = point.diverged > 0;
      figure->texts.push_back({XInches(panel, places[i]), y,
                               some ? absl::StrCat(point.diverged, "/", point.n) : "·", kSmallSize,
                               some ? color : kSecondary, Align::kCenter});
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

// `colours`: what they mean in small multiples; else empty.
std::string FootnoteOf(const SensitivityData& sensitivity, const std::string& colours) {
  bool hollow = false;
  size_t n = 0, diverged = 0;
  for (const Response& setting : sensitivity.settings) {
    diverged += setting.diverged;
    for (const ResponsePoint& point : setting.points) {
      n = std::max(n, point.n);
      hollow = hollow || (point.diverged > 0 && point.own.mean.defined());
    }
  }
  std::string text = n == 1 ? "one seed, no interval" : "mean, 95 % interval and seeds";
  text = absl::StrCat(colours, text);
  if (hollow) absl::StrAppend(&text, "; hollow: some seeds diverged, mean of the others");
  if (!colours.empty() && diverged > 0)
    absl::StrAppend(&text, "; ", diverged, " runs diverged in all");
  if (!sensitivity.others.empty()) absl::StrAppend(&text, "; at ", sensitivity.others);
  return text;
}

void AddLabels(const SensitivityData& sensitivity, const std::vector<double>& places,
               const Panel& panel, double room, Figure* figure) {
  std::vector<EndLabel> labels;
  for (const Response& setting : sensitivity.settings) {
    const Style style = StyleOf(setting.style);
    // The point furthest to the right, whatever the order of the axis's values.
    EndLabel label{setting.label, -std::numeric_limits<double>::infinity(), 0, style.line,
                   style.text};
    for (size_t i = 0; i < places.size(); ++i) {
      const report::Number& mean = setting.points[i].own.mean;
      if (!mean.defined() || places[i] <= label.x) continue;
      label.x = places[i];
      label.y = mean.value;
    }
    if (std::isfinite(label.x)) labels.push_back(std::move(label));
  }
  AddEndLabels(panel, labels, room, figure);
}

absl::StatusOr<Figure> DrawTogether(const Input& input, const SensitivityData& sensitivity) {
  Figure figure;
  figure.width = input.width;
  const auto footnote = FootnoteLines(FootnoteOf(sensitivity, ""), input.width);
  std::vector<std::string> labels;
  size_t counted = 0;
  for (const Response& setting : sensitivity.settings) {
    labels.push_back(setting.label);
    counted += setting.diverged > 0 ? 1 : 0;
  }
  const double room = EndLabelRoom(labels, input.width);
  Panel panel;
  panel.left = kLeft;
  panel.right = input.width - room - 0.03;
  panel.bottom = kBottom + kFootnoteLine * static_cast<double>(footnote.size());
  panel.top = panel.bottom + (input.width >= 5 ? 1.75 : 1.6);
  figure.height = panel.top + 0.12 + kCountLine * static_cast<double>(counted);
  std::vector<double> places;
  panel.x = ValueAxisOf(sensitivity, kPad, &places);
  panel.y = MetricAxis(sensitivity, TicksOver(panel.top - panel.bottom));
  ThinTickLabels(&panel);
  const double middle = (static_cast<double>(sensitivity.settings.size()) - 1) / 2;
  for (size_t s = sensitivity.settings.size(); s-- > 0;) {
    const double dodge = kDodge * (static_cast<double>(s) - middle);
    AddResponse(sensitivity.settings[s], places, StyleOf(sensitivity.settings[s].style), dodge,
                &panel);
  }
  AddXTitle(panel.left, panel.right, panel.bottom - 0.32, sensitivity.axis, &figure);
  AddYTitle(panel.left - 0.4, panel.bottom, panel.top,
            AxisTitle(report::NameOfMetric(input.comparison->key)), &figure);
  AddLabels(sensitivity, places, panel, room, &figure);
  AddCounts(sensitivity, places, panel, room, &figure);
  AddFootnote(footnote, &figure);
  figure.panels.push_back(std::move(panel));
  return figure;
}

void AddMeanLine(const Response& setting, const std::vector<double>& places, Color color,
                 Panel* panel) {
  Line line;
  line.x = places;
  line.color = color;
  line.width = 0.5;
  for (const ResponsePoint& point : setting.points) line.y.push_back(point.own.mean.value);
  panel->layers.push_back(std::move(line));
}

absl::StatusOr<Figure> DrawMultiples(const Input& input, const SensitivityData& sensitivity) {
  const auto footnote =
      FootnoteLines(FootnoteOf(sensitivity, MultiplesText(*input.comparison)), input.width);
  const std::vector<Response>& settings = sensitivity.settings;
  const absl::Status fits =
      SmallMultiples::Check(input.width, settings.size(), 1, false, footnote.size());
  if (!fits.ok()) return fits;
  const bool one_baseline = HasOneBaseline(*input.comparison);
  SmallMultiples grid(input.width, settings.size(), 1, false, footnote);
  for (size_t own = 0; own < settings.size(); ++own) {
    Panel panel = grid.PanelAt(0, own);
    std::vector<double> places;
    panel.x =
        ValueAxisOf(sensitivity, PadForLabels(sensitivity, panel.right - panel.left), &places);
    panel.y = MetricAxis(sensitivity, TicksOver(panel.top - panel.bottom));
    ThinTickLabels(&panel);
    for (size_t s = 0; s < settings.size(); ++s) {
      if (s == own) continue;
      AddMeanLine(settings[s], places, one_baseline && settings[s].style == 0 ? kInk : kOthers,
                  &panel);
    }
    const bool baseline = one_baseline && settings[own].style == 0;
    Style style;
    style.line = baseline ? kInk : kOwn;
    AddResponse(settings[own], places, style, 0, &panel);
    grid.Add(std::move(panel), own, settings[own].label, baseline ? kInk : kOwnText);
  }
  grid.TitleAxes(0, sensitivity.axis, AxisTitle(report::NameOfMetric(input.comparison->key)));
  return grid.Finish();
}

absl::StatusOr<Drawing> DrawSensitivity(const Input& input) {
  const absl::StatusOr<SensitivityData> sensitivity = DataOf(input);
  if (!sensitivity.ok()) return sensitivity.status();
  const bool many = sensitivity->settings.size() > kMaxInOnePanel;
  Drawing drawing;
  auto figure = many ? DrawMultiples(input, *sensitivity) : DrawTogether(input, *sensitivity);
  if (!figure.ok()) return figure.status();
  drawing.figure = *std::move(figure);
  drawing.figure.title =
      absl::StrCat(input.title, ": ", report::NameOfMetric(input.comparison->key).text, " over ",
                   sensitivity->axis);
  drawing.csv = SensitivityCsv(*sensitivity);
  return drawing;
}

// The axis that a sensitivity figure is over; it is drawn only where there is one.
std::string FirstTuned(const Comparison& comparison) {
  return comparison.tuned_axes.empty() ? "" : comparison.tuned_axes[0];
}

std::string SensitivityCaption(const Input& input) {
  std::string text = absl::StrCat(SentenceName(report::NameOfMetric(input.comparison->key)),
                                  " over ", FirstTuned(*input.comparison));
  const auto sensitivity = DataOf(input);
  if (!sensitivity.ok()) return absl::StrCat(text, ".");
  if (!sensitivity->others.empty()) absl::StrAppend(&text, " at ", sensitivity->others);
  absl::StrAppend(&text, ": ", report::MeanName(input.comparison->scale),
                  " and 95 % interval at each value tried");
  bool diverged = false, hollow = false;
  for (const Response& setting : sensitivity->settings) {
    for (const ResponsePoint& point : setting.points) {
      diverged = diverged || point.diverged > 0;
      hollow = hollow || (point.diverged > 0 && point.own.mean.defined());
    }
  }
  if (diverged && sensitivity->settings.size() <= kMaxInOnePanel) {
    absl::StrAppend(&text, "; the numbers above count runs that diverged");
  }
  return absl::StrCat(
      text, hollow ? ". A hollow point has no interval because a run there diverged." : ".");
}

// "pre 2.40 at .004, 2.45 at .01".
std::string SensitivityDescription(const Input& input) {
  std::string text = absl::StrCat("Means of ", report::NameOfMetric(input.comparison->key).text,
                                  " over ", FirstTuned(*input.comparison));
  const auto sensitivity = DataOf(input);
  if (!sensitivity.ok()) return absl::StrCat(text, ".");
  std::vector<std::string> settings;
  for (const Response& setting : sensitivity->settings) {
    std::vector<std::string> means;
    for (size_t i = 0; i < setting.points.size(); ++i) {
      const report::Number& mean = setting.points[i].own.mean;
      if (!mean.defined()) continue;
      means.push_back(absl::StrCat(report::Plain(mean.value, report::DecimalsFor(mean.value)),
                                   " at ", report::ShownValue(sensitivity->labels[i])));
    }
    settings.push_back(
        absl::StrCat(setting.label, " ", means.empty() ? "none" : report::Enumerated(means, 12)));
  }
  const size_t shown = std::min<size_t>(settings.size(), 12);
  const size_t more = settings.size() - shown;
  settings.resize(shown);
  return absl::StrCat(text, ": ", absl::StrJoin(settings, "; "),
                      more > 0 ? absl::StrCat("; and ", more, " more") : "", ".");
}

}  // namespace

// The metric over the values of the first tuned axis, divergences counted above.
constexpr Kind kSensitivity = {
    .name = "sensitivity",
    .title = "Sensitivity to the tuned axis",
    .help =
        "the compared metric over the values of the first tuned axis; divergences counted above, "
        "of more than six settings in the footnote",
    .key = "",
    .wide = false,
    .folded = false,
    .reads = Reads::kComparison,
    .forms = {},
    .wanted =
        [](const Comparison& comparison) {
          return !comparison.tuned_axes.empty() && comparison.choice_key.empty();
        },
    .reduce = nullptr,
    .draw = DrawSensitivity,
    .caption = SensitivityCaption,
    .description = SensitivityDescription,
};

}  // namespace ablate::figure
