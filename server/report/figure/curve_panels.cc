#include "server/report/figure/curve_panels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_layers.h"
#include "server/report/figure/curves.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr double kMean = 1.2, kOwnMean = 1;            // of lines, in points
constexpr size_t kOwnPoints = 200, kOtherPoints = 80;  // of a line in small multiples

// Adds the middle of the seeds' values, without a fraction `tail` at each end.
void AddQuantiles(const std::vector<const ReducedCurve*>& curves, bool diverged, double tail,
                  Extent* extent) {
  std::vector<double> values;
  for (const ReducedCurve* curve : curves) {
    for (const ThinLine& line : curve->seeds) {
      if (line.diverged != diverged) continue;
      std::copy_if(line.y.begin(), line.y.end(), std::back_inserter(values),
                   [](double y) { return std::isfinite(y); });
    }
  }
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  extent->Add(report::SortedQuantile(values, tail));
  extent->Add(report::SortedQuantile(values, 1 - tail));
}

// Returns the range of values to show. Seeds may leave it, so that one that explodes doesn't
// flatten the others.
Extent ValuesOf(const std::vector<const ReducedCurve*>& curves) {
  Extent extent;
  for (const ReducedCurve* curve : curves) {
    for (size_t i = 0; i < curve->x.size(); ++i) {
      extent.Add(curve->mean[i]);
      extent.Add(curve->low[i]);
      extent.Add(curve->high[i]);
    }
  }
  AddQuantiles(curves, false, 0.001, &extent);
  if (extent.empty()) AddQuantiles(curves, true, 0.05, &extent);
  return extent;
}

Extent DifferencesOf(const std::vector<const ReducedCurve*>& curves) {
  Extent steps, extent;
  for (const ReducedCurve* curve : curves) {
    for (const double x : curve->x) steps.Add(x);
  }
  const double from = steps.empty() ? 0 : steps.low() + (steps.high() - steps.low()) / 10;
  for (const ReducedCurve* curve : curves) {
    for (size_t i = 0; i < curve->x.size(); ++i) {
      if (curve->x[i] < from) continue;
      for (const double value : {curve->mean[i], curve->low[i], curve->high[i]}) extent.Add(value);
    }
  }
  extent.Add(0);
  return extent;
}

std::vector<const ReducedCurve*> CurvesOf(const Input& input, size_t index) {
  std::vector<const ReducedCurve*> curves;
  for (const ReducedSetting& setting : input.settings) curves.push_back(&setting.panels[index]);
  return curves;
}

Axis ValuesAxis(const Extent& values, ValueScale scale, size_t ticks) {
  constexpr double kPad = 0.04;
  if (scale == ValueScale::kByValues) return ValueAxis(values, kPad, ticks);
  if (scale == ValueScale::kRatios) return RatioAxis(values, kPad, ticks);
  const bool log = scale == ValueScale::kLogarithmic && !values.empty();
  return log ? LogAxis(values, kPad, ticks) : LinearAxis(values, kPad, ticks);
}

// Returns the axis of coordinates other than steps: the range of means and seeds.
Axis PlacesAxis(const std::vector<const ReducedCurve*>& curves, PlaceScale scale, size_t ticks) {
  Extent places;
  for (const ReducedCurve* curve : curves) {
    for (const double x : curve->x) places.Add(x);
    for (const ThinLine& line : curve->seeds) {
      for (const double x : line.x) places.Add(x);
    }
  }
  if (scale != PlaceScale::kLogarithmic || places.empty()) return LinearAxis(places, 0, ticks);
  Axis axis = LogAxis(places, 0, ticks);
  // Numbers within a decade would touch if there is little room; keep powers of ten only.
  const auto within = [](const Tick& tick) {
    const double exponent = std::log10(tick.at);
    return std::abs(exponent - std::round(exponent)) > 1e-9;
  };
  if (axis.ticks.size() > 2 * ticks) {
    axis.ticks.erase(std::remove_if(axis.ticks.begin(), axis.ticks.end(), within),
                     axis.ticks.end());
  }
  return axis;
}

Axis StepsAxis(const std::vector<const ReducedCurve*>& curves, const CurvePanel& shown,
               size_t x_ticks) {
  Extent steps;
  for (const ReducedCurve* curve : curves) {
    if (curve->converged + curve->diverged == 0) continue;
    steps.Add(curve->first_step);
    steps.Add(curve->last_step);
  }
  if (shown.last_steps > 0 && !steps.empty()) {
    const double first = steps.high() - shown.last_steps + 1;
    const double last = steps.high();
    steps = Extent();
    steps.Add(std::max(first, 0.0));
    steps.Add(last);
  }
  return StepAxis(steps, x_ticks);
}

void SetAxes(const std::vector<const ReducedCurve*>& curves, const CurvePanel& shown,
             size_t x_ticks, Panel* panel) {
  if (shown.diagonal) {
    Extent whole;
    for (const double end : {0, 1}) whole.Add(end);
    panel->x = LinearAxis(whole, 0, x_ticks);
    panel->y = LinearAxis(whole, 0, TicksOver(panel->top - panel->bottom));
    panel->y.grid = true;
    panel->layers.push_back(Line{{0, 1}, {0, 1}, kInk, 0.6, {1.5, 1.5}});
    return;
  }
  panel->x = shown.places == PlaceScale::kSteps ? StepsAxis(curves, shown, x_ticks)
                                                : PlacesAxis(curves, shown.places, x_ticks);
  panel->y = ValuesAxis(shown.zero ? DifferencesOf(curves) : ValuesOf(curves), shown.scale,
                        TicksOver(panel->top - panel->bottom));
  panel->y.grid = true;
  if (shown.zero) {
    panel->layers.push_back(Line{{panel->x.low, panel->x.high}, {0, 0}, kInk, 0.6});
  }
}

// Returns false if lines of seeds would overcrowd a panel.
bool ShowSeeds(const std::vector<const ReducedCurve*>& curves) {
  size_t lines = 0;
  for (const ReducedCurve* curve : curves) lines += curve->seeds.size();
  return lines <= kMaxSeedLines;
}

void AddAllSettings(const Input& input, size_t index, Panel* panel) {
  const std::vector<const ReducedCurve*> curves = CurvesOf(input, index);
  const bool seeds = ShowSeeds(curves);
  const auto each = [&](auto add) {
    for (size_t s = 0; s < curves.size(); ++s) add(*curves[s], StyleOf(input.settings[s].style));
  };
  if (seeds) {
    each([&](const ReducedCurve& curve, const Style& style) {
      AddSeedLines(curve, style.line, panel);
    });
  }
  each([&](const ReducedCurve& curve, const Style& style) { AddBand(curve, style.line, panel); });
  // Hues of crossed axes look alike in grey, and the dash doesn't distinguish them.
  const bool crossed =
      std::any_of(input.settings.begin(), input.settings.end(),
                  [](const ReducedSetting& setting) { return IsCrossedStyle(setting.style); });
  // The baseline last, on top, because the others are compared with it.
  for (size_t s = curves.size(); s-- > 0;) {
    const Style style = StyleOf(input.settings[s].style);
    AddMeanLine(*curves[s], style.line, style.dash, kMean, panel);
    if (crossed) AddEndMarker(*curves[s], style, panel);
  }
  each([&](const ReducedCurve& curve, const Style& style) {
    AddDivergences(curve, style.line, panel);
  });
}

constexpr double kUntitledLine = 0.14;  // above a panel without a title

// Labels the sides of 0 above the panel, where no curve is.
void AddSides(const CurvePanel& shown, const Panel& panel, Figure* figure) {
  if (shown.sides.empty()) return;
  figure->texts.push_back({panel.right, panel.top + kUntitledLine / 2, shown.sides, kSmallSize,
                           kSecondary, Align::kRight});
}

void AddLabels(const Input& input, size_t index, const Panel& panel, double room, Figure* figure) {
  std::vector<EndLabel> labels;
  for (const ReducedSetting& setting : input.settings) {
    const Style style = StyleOf(setting.style);
    EndLabel label{setting.label, 0, 0, style.line, style.text, LeaderDash(setting.style)};
    const bool ends = EndOf(setting.panels[index], &label.x, &label.y);
    if (ends && label.x >= panel.x.low) labels.push_back(std::move(label));
  }
  AddEndLabels(panel, labels, room, figure);
}

// Returns the room at the left that all panels of that height need.
double LeftRoomOf(const Input& input, const std::vector<CurvePanel>& panels, double height) {
  double room = kLeft;
  for (size_t i = 0; i < panels.size(); ++i) {
    Panel panel;
    panel.top = height;
    SetAxes(CurvesOf(input, i), panels[i], 5, &panel);
    room = std::max(room, LeftRoom(panel.y));
  }
  return room;
}

// Draws all settings in each panel; panels are side by side in a wide figure, otherwise stacked.
Figure DrawTogether(const Input& input, const std::vector<CurvePanel>& panels,
                    const CurveWords& words, const std::vector<std::string>& footnote) {
  Figure figure;
  figure.width = input.width;
  const bool beside = input.width >= 5;
  const double foot = kBottom + kFootnoteLine * static_cast<double>(footnote.size());
  const bool titled = !panels[0].title.empty();
  const double title = titled ? kTitleLine : kUntitledLine;
  const double tall = panels.size() > 1 ? 1.25 : beside ? 1.75 : 1.6;
  const size_t rows = beside ? 1 : panels.size();
  const double pitch = tall + title + kBottom;
  figure.height = foot + pitch * static_cast<double>(rows) - kBottom;
  const double room = EndLabelRoom(LabelsOf(input.settings), input.width);
  const size_t across = beside ? panels.size() : 1;
  const double wide = (input.width - room - 0.03) / static_cast<double>(across);
  const double left = LeftRoomOf(input, panels, tall);
  for (size_t i = 0; i < panels.size(); ++i) {
    const size_t row = beside ? 0 : i, column = beside ? i : 0;
    Panel panel;
    panel.left = wide * static_cast<double>(column) + (column > 0 ? 0.08 : 0) + left;
    panel.right = wide * static_cast<double>(column + 1);
    panel.bottom = foot + pitch * static_cast<double>(rows - 1 - row);
    panel.top = panel.bottom + tall;
    SetAxes(CurvesOf(input, i), panels[i], beside && across == 1 ? 10 : 5, &panel);
    AddAllSettings(input, i, &panel);
    AddSides(panels[i], panel, &figure);
    if (titled) {
      AddPanelTitle(panel.left, panel.right, panel.top, panels[i].title, panels[i].remark, &figure);
    }
    AddXTitle(panel.left, panel.right, panel.bottom - 0.32, words.x, &figure);
    if (column == 0) {
      AddYTitle(panel.bottom, panel.top, words.y, &figure);
    }
    if (column + 1 == across) AddLabels(input, i, panel, room, &figure);
    figure.panels.push_back(std::move(panel));
  }
  AddFootnote(footnote, &figure);
  figure.steps = panels.size() == 1 && panels[0].places == PlaceScale::kSteps;
  return figure;
}

// Returns true for the setting that is black in every panel: the only baseline, if there is one.
bool IsBlack(const Input& input, size_t setting) {
  return HasOneBaseline(*input.comparison) && input.settings[setting].style == 0;
}

// Returns what panels are drawn from, without settings that have no run: a panel of such a setting
// would show other settings' curves under its name.
Input DrawnPart(const Input& input) {
  Input drawn;
  drawn.comparison = input.comparison;
  drawn.width = input.width;
  std::copy_if(input.settings.begin(), input.settings.end(), std::back_inserter(drawn.settings),
               HasRuns);
  return drawn;
}

// Returns the meaning of the colours of small multiples; "" for other figures.
std::string ColoursText(const Input& input) {
  if (!InSmallMultiples(input)) return "";
  bool baseline = false;
  for (size_t s = 0; s < input.settings.size(); ++s) {
    baseline = baseline || (IsBlack(input, s) && HasRuns(input.settings[s]));
  }
  return MultiplesText(baseline);
}

// Draws a setting's panel: its own curve, the baseline's, and the others in grey.
void AddOneSetting(const Input& input, size_t index, size_t own, Panel* panel) {
  size_t baseline = 0;
  while (baseline < input.settings.size() && !IsBlack(input, baseline)) ++baseline;
  for (size_t s = 0; s < input.settings.size(); ++s) {
    if (s == own || s == baseline) continue;
    AddMeanLine(Thinned(input.settings[s].panels[index], kOtherPoints), kOthers, {}, 0.4, panel);
  }
  const ReducedCurve curve = Thinned(input.settings[own].panels[index], kOwnPoints);
  const Color color = own == baseline ? kInk : kOwn;
  if (ShowSeeds({&curve})) AddSeedLines(curve, color, panel);
  AddBand(curve, color, panel);
  if (baseline < input.settings.size()) {
    AddMeanLine(Thinned(input.settings[baseline].panels[index], kOwnPoints), kInk, {}, 0.9, panel);
  }
  AddMeanLine(curve, color, {}, kOwnMean, panel);
  AddDivergences(curve, color, panel);
}

absl::StatusOr<Figure> DrawMultiples(const Input& input, const std::vector<CurvePanel>& panels,
                                     const CurveWords& words,
                                     const std::vector<std::string>& footnote) {
  SmallMultiples grid(input.width, LeftRoomOf(input, panels, SmallMultiples::kPanelHeight),
                      LabelsOf(input.settings), panels.size(), !panels[0].title.empty(), footnote);
  RETURN_IF_ERROR(grid.Check());
  for (size_t block = 0; block < panels.size(); ++block) {
    grid.TitleBlock(block, panels[block].title, panels[block].remark);
    for (size_t s = 0; s < input.settings.size(); ++s) {
      Panel panel = grid.PanelAt(block, s);
      SetAxes(CurvesOf(input, block), panels[block], 2, &panel);
      AddOneSetting(input, block, s, &panel);
      grid.Add(std::move(panel), s, IsBlack(input, s) ? kInk : kOwnText);
    }
    grid.TitleAxes(block, words.x, words.y);
  }
  return grid.Finish();
}

// Returns the marks that occur: "× diverged", "× diverged (▲ above the panel)", "▲ diverged, above
// the panel".
std::string DivergedMarks(const Input& input, const std::vector<CurvePanel>& panels) {
  DivergenceMarks marks;
  for (size_t i = 0; i < panels.size(); ++i) {
    const std::vector<const ReducedCurve*> curves = CurvesOf(input, i);
    Panel panel;
    SetAxes(curves, panels[i], 5, &panel);
    for (const ReducedCurve* curve : curves) FindDivergences(*curve, panel, &marks);
  }
  if (!marks.crosses && marks.above != marks.below) {
    return marks.above ? "▲ diverged, above the panel" : "▼ diverged, below the panel";
  }
  std::vector<std::string> beyond;
  if (marks.above) beyond.emplace_back("▲ above the panel");
  if (marks.below) beyond.emplace_back("▼ below it");
  return absl::StrCat("× diverged",
                      beyond.empty() ? "" : absl::StrCat(" (", absl::StrJoin(beyond, ", "), ")"));
}

// Returns "× diverged, not in the mean: none 2 of 12"; empty if none did.
std::string DivergedText(const Input& input, const std::vector<CurvePanel>& panels) {
  std::vector<std::string> settings;
  for (const ReducedSetting& setting : input.settings) {
    const ReducedCurve& curve = setting.panels[0];
    if (curve.diverged == 0) continue;
    settings.push_back(absl::StrCat(FootnoteName(setting.label), " ", curve.diverged, " of ",
                                    curve.diverged + curve.converged));
  }
  if (settings.empty()) return "";
  return absl::StrCat(DivergedMarks(input, panels),
                      ", not in the mean: ", report::Enumerated(settings, 6));
}

// Returns the footnote: number of seeds in the means, smoothing (unless the panels state it), the
// band, diverged runs, settings without runs; for small multiples, the meaning of the colours.
std::string CurveFootnote(const Input& input, const std::vector<CurvePanel>& panels) {
  const bool average_in_titles = !panels[0].title.empty();
  std::vector<std::string> parts;
  const bool geometric = input.curves.log && AnyInterval(input);
  parts.push_back(absl::StrCat(geometric ? "geometric " : "", SeedsText(input)));
  const std::string average = average_in_titles ? "" : SmoothingText(input, 0);
  if (!average.empty()) parts.push_back(average);
  if (AnyInterval(input)) {
    parts.push_back(absl::StrCat(IntervalMark(input), ": 95 % t interval of the mean"));
  }
  std::vector<LeftOutRuns> without;
  for (const ReducedSetting& setting : input.settings) {
    if (!HasRuns(setting)) without.push_back({setting.label, true});
  }
  std::vector<std::string> statements = {absl::StrJoin(parts, ", ")};
  if (std::string diverged = DivergedText(input, panels); !diverged.empty()) {
    statements.push_back(std::move(diverged));
  }
  return CurvesFootnote(input, std::move(statements), without);
}

std::string CurveTitle(const Input& input) {
  return absl::StrCat(input.title, ": ", input.Metric().text, " over steps of ",
                      report::Enumerated(NamesOf(input.settings), kMostNamed));
}

// Returns the last mean of each setting.
std::string CurvesDescription(const Input& input) {
  constexpr size_t kNamed = 8;
  const auto last = [](const ReducedCurve& curve) {
    double mean = kNone;
    for (const double value : curve.mean) mean = std::isfinite(value) ? value : mean;
    return std::isfinite(mean) ? absl::StrCat("at ", report::Plain(mean)) : "";
  };
  return absl::StrCat("Curves of ", input.Metric().text,
                      ". They end: ", EachCurve(input.settings, kNamed, last), ".");
}

// Says which runs have a thin line in some panel: not all if they would overcrowd it.
struct ShownSeeds {
  bool converged = false, diverged = false;
};

ShownSeeds SeedsShown(const Input& input) {
  ShownSeeds shown;
  const bool many = InSmallMultiples(input);
  const size_t panels = input.settings.empty() ? 0 : input.settings[0].panels.size();
  for (size_t panel = 0; panel < panels; ++panel) {
    const std::vector<const ReducedCurve*> curves = CurvesOf(input, panel);
    for (const ReducedCurve* curve : curves) {
      if (!ShowSeeds(many ? std::vector<const ReducedCurve*>{curve} : curves)) continue;
      for (const ThinLine& line : curve->seeds) {
        (line.diverged ? shown.diverged : shown.converged) = true;
      }
    }
  }
  return shown;
}

}  // namespace

std::string SeedLinesText(const Input& input) {
  const ShownSeeds shown = SeedsShown(input);
  if (!shown.converged) return shown.diverged ? ". Thin lines: runs that diverged" : "";
  return absl::StrCat(". Thin lines: single runs",
                      shown.diverged ? ", including those that diverged" : "");
}

std::string CurveCsv(const Input& input, const std::vector<CurvePanel>& panels) {
  std::string csv = "panel,setting,seed,step,value,low,high\n";
  for (size_t p = 0; p < panels.size(); ++p) {
    const std::string& panel = panels[p].title.empty() ? input.key : panels[p].title;
    for (const ReducedSetting& setting : input.settings) {
      const ReducedCurve& curve = setting.panels[p];
      const auto number = [ratios = panels[p].scale == ValueScale::kRatios](double value) {
        return ratios ? std::exp(value) : value;
      };
      const auto add = [&](const auto&... fields) {
        AddCsvRow(&csv, panel, setting.label, fields...);
      };
      for (size_t i = 0; i < curve.x.size(); ++i) {
        add("", curve.x[i], number(curve.mean[i]), number(curve.low[i]), number(curve.high[i]));
      }
      for (const ThinLine& line : curve.seeds) {
        for (size_t i = 0; i < line.x.size(); ++i) {
          add(line.seed, line.x[i], number(line.y[i]), "", "");
        }
      }
    }
  }
  return csv;
}

bool HasRuns(const ReducedSetting& setting) {
  return std::any_of(setting.panels.begin(), setting.panels.end(), [](const ReducedCurve& curve) {
    return curve.converged + curve.diverged > 0;
  });
}

bool InSmallMultiples(const Input& input) {
  size_t drawn = 0, plain = 0;
  for (const ReducedSetting& setting : input.settings) {
    if (!HasRuns(setting)) continue;
    ++drawn;
    plain += setting.style == kPlainStyle ? 1 : 0;
  }
  return drawn > kMaxInOnePanel || (drawn > 1 && plain > 0);
}

std::string SmoothingText(const Input& input, size_t panel) {
  uint32_t most = 1;
  for (const ReducedSetting& setting : input.settings) {
    most = std::max(most, setting.panels[panel].smoothed);
  }
  return most > 1 ? absl::StrCat(most, "-step average") : "";
}

std::string SeedsText(const Input& input) {
  size_t least = SIZE_MAX, most = 0;
  for (const ReducedSetting& setting : input.settings) {
    const size_t n = setting.panels[0].converged;
    if (n > 0) least = std::min(least, n);
    most = std::max(most, n);
  }
  if (most == 0) return "no seed converged";
  if (most == 1) return "one seed, no interval";
  return absl::StrCat("mean of ", least < most ? absl::StrCat(least, " to ") : "",
                      report::Counted(most, "seed"));
}

bool AnyInterval(const Input& input) {
  return std::any_of(input.settings.begin(), input.settings.end(),
                     [](const ReducedSetting& s) { return s.panels[0].converged > 1; });
}

std::string IntervalMark(const Input& input) {
  const auto is_point = [](const ReducedCurve& curve) { return curve.x.size() <= 1; };
  const bool points =
      std::all_of(input.settings.begin(), input.settings.end(), [&](const ReducedSetting& setting) {
        return std::all_of(setting.panels.begin(), setting.panels.end(), is_point);
      });
  return points ? "bar" : "band";
}

std::string MeanText(const Input& input, bool geometric) {
  const bool interval = AnyInterval(input);
  return absl::StrCat(
      geometric && interval ? "geometric " : "", SeedsText(input),
      interval ? absl::StrCat(", ", IntervalMark(input), ": its 95 % t interval") : "");
}

std::string CurvesFootnote(const Input& input, std::vector<std::string> statements,
                           const std::vector<LeftOutRuns>& settings) {
  return absl::StrCat(ColoursText(input),
                      FootnoteOf(std::move(statements), settings, "in the mean"));
}

std::vector<ReducedSetting> ReduceLines(const Analyzed& analyzed, LineOf line_of, bool log) {
  std::vector<ReducedSetting> settings;
  for (const AnalyzedSetting& setting : analyzed.settings) {
    ReducedCurve curve;
    curve.converged = setting.seeds.size();
    std::map<double, std::vector<double>> by_place;
    for (const AnalyzedSeed& seed : setting.seeds) {
      ThinLine line = line_of(seed);
      for (size_t i = 0; i < line.x.size(); ++i) by_place[line.x[i]].push_back(line.y[i]);
      if (setting.seeds.size() <= kMaxSeedLines) curve.seeds.push_back(std::move(line));
    }
    for (const auto& [place, values] : by_place) AddMean(place, values, log, &curve);
    settings.push_back({setting.label, setting.style, {std::move(curve)}});
  }
  return settings;
}

std::string LinesCsv(const Input& input, absl::string_view head,
                     const std::vector<ReducedSetting>& settings, LineOf line_of) {
  std::string csv(head);
  for (size_t s = 0; s < settings.size(); ++s) {
    const ReducedCurve& curve = settings[s].panels[0];
    const auto add = [&](const auto&... fields) {
      AddCsvRow(&csv, input.key, settings[s].label, fields...);
    };
    for (size_t i = 0; i < curve.x.size(); ++i) {
      add("", "", curve.x[i], curve.mean[i], curve.low[i], curve.high[i]);
    }
    for (const AnalyzedSeed& seed : input.analyzed.settings[s].seeds) {
      const ThinLine line = line_of(seed);
      for (size_t i = 0; i < line.x.size(); ++i) {
        add(seed.step, seed.seed, line.x[i], line.y[i], "", "");
      }
    }
  }
  return csv;
}

std::string EachCurve(const std::vector<ReducedSetting>& settings, size_t most,
                      absl::FunctionRef<std::string(const ReducedCurve&)> text_of) {
  std::vector<std::string> texts;
  for (const ReducedSetting& setting : settings) {
    const std::string text = text_of(setting.panels.back());
    texts.push_back(
        absl::StrCat(report::Listed(setting.label), " ", text.empty() ? "without a mean" : text));
  }
  return report::Enumerated(texts, most);
}

absl::StatusOr<Figure> DrawPanels(const Input& input, const std::vector<CurvePanel>& panels,
                                  const CurveWords& words) {
  const std::vector<std::string> footnote = FootnoteLines(words.footnote, input.width);
  const Input drawn = DrawnPart(input);
  if (!InSmallMultiples(drawn)) return DrawTogether(drawn, panels, words, footnote);
  return DrawMultiples(drawn, panels, words, footnote);
}

absl::StatusOr<Drawing> DrawCurves(const Input& input, const std::vector<CurvePanel>& panels) {
  ASSIGN_OR_RETURN(
      auto figure,
      DrawPanels(input, panels, {"Step", AxisTitle(input.Metric()), CurveFootnote(input, panels)}));
  Drawing drawing;
  drawing.figure = std::move(figure);
  drawing.figure.title = CurveTitle(input);
  drawing.figure.description = CurvesDescription(input);
  drawing.csv = CurveCsv(input, panels);
  return drawing;
}

std::string CurvesCaption(const Input& input, absl::string_view what) {
  return absl::StrCat(SentenceName(input.Metric()), " by step, ", what,
                      input.curves.log ? " Line: geometric mean" : " Line: mean",
                      " over the seeds that converged. Band: its 95 % t interval",
                      input.curves.log ? " (of the logarithms)" : "", SeedLinesText(input), ".",
                      ChosenText(*input.comparison));
}

}  // namespace ablate::figure
