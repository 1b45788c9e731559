// Panels with curves over steps: one or two side by side, or small multiples where there are many
// settings.
#include "server/report/figure/curve_panels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/report/figure/curve_layers.h"
#include "server/report/figure/curve_text.h"
#include "server/report/figure/frame.h"
#include "server/report/figure/metric_name.h"
#include "server/report/figure/multiples.h"
#include "server/report/figure/ticks.h"

namespace ablate::figure {
namespace {

constexpr double kMean = 1.2, kOwnMean = 1;
constexpr size_t kOwnPoints = 200, kOtherPoints = 80;  // of a line in small multiples

std::vector<const Track*> TracksOf(const Input& input, size_t index) {
  std::vector<const Track*> tracks;
  for (const SettingTracks& setting : input.settings) tracks.push_back(&setting.tracks[index]);
  return tracks;
}

void SetAxes(const std::vector<const Track*>& tracks, const CurvePanel& shown, size_t x_ticks,
             Panel* panel) {
  Extent steps;
  for (const Track* track : tracks) {
    if (track->converged + track->diverged == 0) continue;
    steps.Add(track->first_step);
    steps.Add(track->last_step);
  }
  if (shown.last_steps > 0 && !steps.empty()) {
    const double first = steps.high() - shown.last_steps + 1;
    const double last = steps.high();
    steps = Extent();
    steps.Add(std::max(first, 0.0));
    steps.Add(last);
  }
  panel->x = StepAxis(steps, x_ticks);
  panel->y = ValueAxis(ValuesOf(tracks), 0.04, TicksOver(panel->top - panel->bottom));
  panel->y.grid = true;
}

// Lines of seeds are left out of a panel where they would be a thicket.
bool ShowSeeds(const std::vector<const Track*>& tracks) {
  size_t lines = 0;
  for (const Track* track : tracks) lines += track->seeds.size();
  return lines <= kMostSeedLines;
}

void AddAllSettings(const Input& input, size_t index, Panel* panel) {
  const std::vector<const Track*> tracks = TracksOf(input, index);
  const bool seeds = ShowSeeds(tracks);
  const auto each = [&](auto add) {
    for (size_t s = 0; s < tracks.size(); ++s) add(*tracks[s], StyleOf(input.settings[s].style));
  };
  if (seeds) {
    each([&](const Track& track, const Style& style) { AddSeedLines(track, style.line, panel); });
  }
  each([&](const Track& track, const Style& style) { AddBand(track, style.line, panel); });
  // The baseline last: it is what the others are compared with.
  for (size_t s = tracks.size(); s-- > 0;) {
    const Style style = StyleOf(input.settings[s].style);
    AddMean(*tracks[s], style.line, style.dash, kMean, panel);
  }
  each([&](const Track& track, const Style& style) { AddDivergences(track, style.line, panel); });
}

void AddLabels(const Input& input, size_t index, const Panel& panel, double room, Figure* figure) {
  std::vector<EndLabel> labels;
  for (const SettingTracks& setting : input.settings) {
    const Style style = StyleOf(setting.style);
    EndLabel label{setting.label, 0, 0, style.line, style.text};
    const bool ends = EndOf(setting.tracks[index], &label.x, &label.y);
    if (ends && label.x >= panel.x.low) labels.push_back(std::move(label));
  }
  AddEndLabels(panel, labels, room, figure);
}

// All settings in each panel; panels beside each other where the figure is wide, else stacked.
Figure DrawTogether(const Input& input, const std::vector<CurvePanel>& panels,
                    const std::vector<std::string>& footnote) {
  Figure figure;
  figure.width = input.width;
  const bool beside = input.width >= 5;
  const double foot = kBottom + kFootnoteLine * static_cast<double>(footnote.size());
  const bool titled = !panels[0].title.empty();
  const double title = titled ? kTitleLine : 0.14;
  const double tall = panels.size() > 1 ? 1.25 : beside ? 1.75 : 1.6;
  const size_t rows = beside ? 1 : panels.size();
  const double pitch = tall + title + kBottom;
  figure.height = foot + pitch * static_cast<double>(rows) - kBottom;
  std::vector<std::string> labels;
  for (const SettingTracks& setting : input.settings) labels.push_back(setting.label);
  const double room = EndLabelRoom(labels, input.width);
  const size_t across = beside ? panels.size() : 1;
  const double wide = (input.width - room - 0.03) / static_cast<double>(across);
  for (size_t i = 0; i < panels.size(); ++i) {
    const size_t row = beside ? 0 : i, column = beside ? i : 0;
    Panel panel;
    panel.left = wide * static_cast<double>(column) + (column > 0 ? 0.08 : 0) + kLeft;
    panel.right = wide * static_cast<double>(column + 1);
    panel.bottom = foot + pitch * static_cast<double>(rows - 1 - row);
    panel.top = panel.bottom + tall;
    SetAxes(TracksOf(input, i), panels[i], beside && across == 1 ? 10 : 5, &panel);
    AddAllSettings(input, i, &panel);
    if (titled) {
      AddPanelTitle(panel.left, panel.right, panel.top, panels[i].title, panels[i].remark, &figure);
    }
    AddXTitle(panel.left, panel.right, panel.bottom - 0.32, "Step", &figure);
    if (column == 0) {
      AddYTitle(panel.left - 0.4, panel.bottom, panel.top, AxisTitle(NameOf(input.key)), &figure);
    }
    if (column + 1 == across) AddLabels(input, i, panel, room, &figure);
    figure.panels.push_back(std::move(panel));
  }
  AddFootnote(footnote, &figure);
  return figure;
}

// The setting that is black in every panel: where there is one baseline, else none.
bool IsBlack(const Input& input, size_t setting) {
  return HasOneBaseline(*input.comparison) && input.settings[setting].style == 0;
}

// One panel a setting: its own curve, the baseline's, and the others in grey.
void AddOneSetting(const Input& input, size_t index, size_t own, Panel* panel) {
  size_t baseline = 0;
  while (baseline < input.settings.size() && !IsBlack(input, baseline)) ++baseline;
  for (size_t s = 0; s < input.settings.size(); ++s) {
    if (s == own || s == baseline) continue;
    AddMean(ThinTrack(input.settings[s].tracks[index], kOtherPoints), kOthers, {}, 0.4, panel);
  }
  const Track track = ThinTrack(input.settings[own].tracks[index], kOwnPoints);
  const Color color = own == baseline ? kInk : kOwn;
  if (ShowSeeds({&track})) AddSeedLines(track, color, panel);
  AddBand(track, color, panel);
  if (baseline < input.settings.size()) {
    AddMean(ThinTrack(input.settings[baseline].tracks[index], kOwnPoints), kInk, {}, 0.9, panel);
  }
  AddMean(track, color, {}, kOwnMean, panel);
  AddDivergences(track, color, panel);
}

Figure DrawMultiples(const Input& input, const std::vector<CurvePanel>& panels,
                     const std::vector<std::string>& footnote) {
  Multiples grid(input.width, input.settings.size(), panels.size(), !panels[0].title.empty(),
                 footnote);
  for (size_t block = 0; block < panels.size(); ++block) {
    grid.TitleBlock(block, panels[block].title, panels[block].remark);
    for (size_t s = 0; s < input.settings.size(); ++s) {
      Panel panel = grid.PanelAt(block, s);
      SetAxes(TracksOf(input, block), panels[block], 2, &panel);
      AddOneSetting(input, block, s, &panel);
      grid.Add(std::move(panel), s, input.settings[s].label, IsBlack(input, s) ? kInk : kOwnText);
    }
    grid.TitleAxes(block, "Step", AxisTitle(NameOf(input.key)));
  }
  return grid.Finish();
}

}  // namespace

ShownSeeds SeedsShown(const Input& input) {
  ShownSeeds shown;
  const bool many = input.settings.size() > kMostInOnePanel;
  const size_t panels = input.settings.empty() ? 0 : input.settings[0].tracks.size();
  for (size_t panel = 0; panel < panels; ++panel) {
    const std::vector<const Track*> tracks = TracksOf(input, panel);
    for (const Track* track : tracks) {
      if (!ShowSeeds(many ? std::vector<const Track*>{track} : tracks)) continue;
      for (const ThinLine& line : track->seeds) {
        (line.diverged ? shown.diverged : shown.converged) = true;
      }
    }
  }
  return shown;
}

absl::StatusOr<Drawing> DrawCurves(const Input& input, const std::string& name,
                                   const std::vector<CurvePanel>& panels) {
  Drawing drawing;
  const bool many = input.settings.size() > kMostInOnePanel;
  const bool titled = !panels[0].title.empty();
  const std::vector<std::string> footnote =
      FootnoteLines(CurveFootnote(input, titled, many), input.width);
  if (many) {
    const absl::Status fits = Multiples::Check(input.width, input.settings.size(), panels.size(),
                                               titled, footnote.size());
    if (!fits.ok()) return fits;
  }
  drawing.figure =
      many ? DrawMultiples(input, panels, footnote) : DrawTogether(input, panels, footnote);
  drawing.figure.name = name;
  drawing.figure.title = CurveTitle(input);
  drawing.csv = CurveCsv(input, panels);
  return drawing;
}

}  // namespace ablate::figure
