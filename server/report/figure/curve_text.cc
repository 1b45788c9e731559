// The words and the CSV of figures with curves.
#include "server/report/figure/curve_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/figure/csv.h"
#include "server/report/figure/frame.h"
#include "server/report/figure/measure.h"
#include "server/report/figure/metric_name.h"
#include "server/report/text.h"

namespace ablate::figure {
namespace {

// "mean of 12 seeds", "mean of 10 to 12 seeds", "one seed", over the settings.
std::string SeedsText(const Input& input) {
  size_t least = SIZE_MAX, most = 0;
  for (const SettingTracks& setting : input.settings) {
    const size_t n = setting.tracks[0].converged;
    if (n > 0) least = std::min(least, n);
    most = std::max(most, n);
  }
  if (most == 0) return "no seed converged";
  if (most == 1) return "one seed, no interval";
  return absl::StrCat("mean of ", least < most ? absl::StrCat(least, " to ") : "",
                      report::Counted(most, "seed"));
}

// "× diverged, not in the mean: none 2 of 12"; empty if none did.
std::string DivergedText(const Input& input) {
  std::vector<std::string> settings;
  for (const SettingTracks& setting : input.settings) {
    const Track& track = setting.tracks[0];
    if (track.diverged == 0) continue;
    settings.push_back(absl::StrCat(ElideMiddle(setting.label, 0.8, kSmallSize), " ",
                                    track.diverged, " of ", track.diverged + track.converged));
  }
  if (settings.empty()) return "";
  return absl::StrCat("× diverged, not in the mean: ", report::Enumerated(settings, 6));
}

bool AnyInterval(const Input& input) {
  return std::any_of(input.settings.begin(), input.settings.end(),
                     [](const SettingTracks& s) { return s.tracks[0].converged > 1; });
}

}  // namespace

std::string SmoothingText(const Input& input, size_t track) {
  uint32_t most = 1;
  for (const SettingTracks& setting : input.settings) {
    most = std::max(most, setting.tracks[track].smoothed);
  }
  return most > 1 ? absl::StrCat(most, "-step average") : "";
}

std::string MultiplesText(const report::Comparison& comparison) {
  return absl::StrCat(HasOneBaseline(comparison) ? "black: baseline; " : "",
                      "grey: the other settings; ");
}

std::string CurveFootnote(const Input& input, bool average_in_titles, bool multiples) {
  std::vector<std::string> parts;
  parts.push_back(SeedsText(input));
  const std::string average = average_in_titles ? "" : SmoothingText(input, 0);
  if (!average.empty()) parts.push_back(average);
  if (AnyInterval(input)) parts.push_back("band: 95 % interval of the mean");
  const std::string diverged = DivergedText(input);
  return absl::StrCat(multiples ? MultiplesText(*input.comparison) : "", absl::StrJoin(parts, ", "),
                      diverged.empty() ? "" : "; ", diverged);
}

std::string CurveTitle(const Input& input) {
  std::vector<std::string> labels;
  for (const SettingTracks& setting : input.settings) labels.push_back(setting.label);
  return absl::StrCat(input.title, ": ", NameOf(input.key).text, " over steps of ",
                      report::Enumerated(labels, 12));
}

std::string CurveCsv(const Input& input, const std::vector<CurvePanel>& panels) {
  std::string csv = "panel,setting,seed,step,value,low,high\n";
  for (size_t p = 0; p < panels.size(); ++p) {
    const std::string panel = CsvText(panels[p].title.empty() ? input.key : panels[p].title);
    for (const SettingTracks& setting : input.settings) {
      const std::string label = CsvText(setting.label);
      const Track& track = setting.tracks[p];
      for (size_t i = 0; i < track.x.size(); ++i) {
        AddCsvRow({panel, label, "", CsvNumber(track.x[i]), CsvNumber(track.mean[i]),
                   CsvNumber(track.low[i]), CsvNumber(track.high[i])},
                  &csv);
      }
      for (const ThinLine& line : track.seeds) {
        for (size_t i = 0; i < line.x.size(); ++i) {
          AddCsvRow({panel, label, absl::StrCat(line.seed), CsvNumber(line.x[i]),
                     CsvNumber(line.y[i]), "", ""},
                    &csv);
        }
      }
    }
  }
  return csv;
}

}  // namespace ablate::figure
