// What a report says about each kind of figure: title, caption, and a description for those who
// can't see it.
#include "server/report/html/figure_words.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/palette.h"
#include "server/report/figure/response.h"
#include "server/report/text.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;

bool Always(const Comparison&) { return true; }
bool IfCompared(const Comparison& comparison) { return comparison.family > 0; }
bool IfTuned(const Comparison& comparison) { return !comparison.tuned_axes.empty(); }

constexpr FigureKind kReportKinds[] = {
    {"loss", "Loss", false, Always},
    {"forest", "Paired differences", false, IfCompared},
    {"sensitivity", "Sensitivity to the tuned axis", false, IfTuned},
    {"summary", "Settings", false, Always},
    {"windows", "The first and the last steps", true, Always},
    {"curves", "Cumulative and trailing mean", true, Always},
};

// The axis that a sensitivity figure is over; it is drawn only where there is one.
std::string FirstTuned(const Comparison& comparison) {
  return comparison.tuned_axes.empty() ? "" : comparison.tuned_axes[0];
}

bool HasWindows(const figure::Input& input) {
  return input.windows != nullptr && !input.windows->windows.empty();
}

std::string TunedText(const Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return "";
  return absl::StrCat(" Each setting's runs are those at its chosen ",
                      absl::StrJoin(comparison.tuned_axes, " and "), ".");
}

std::string SmoothText(const figure::Input& input) {
  return input.curves.smooth > 1 ? absl::StrCat("trailing means over ", input.curves.smooth,
                                                " steps (a fifth of a shorter curve)")
                                 : std::string("values as they are");
}

// The first window has a smoothing of its own.
std::string WindowsSmoothText(const figure::Input& input) {
  if (input.curves.smooth <= figure::kFirstSmooth) return SmoothText(input);
  return absl::StrCat("trailing means over ", figure::kFirstSmooth, " and over ",
                      input.curves.smooth, " steps (a fifth of a shorter curve)");
}

std::string SeedLinesText(const figure::Input& input) {
  const figure::ShownSeeds shown = figure::SeedsShown(input);
  if (!shown.converged) return shown.diverged ? "; thin lines are runs that diverged" : "";
  return absl::StrCat("; thin lines are single runs",
                      shown.diverged ? ", those that diverged included" : "");
}

std::string CurvesCaption(const figure::Input& input, absl::string_view what) {
  return absl::StrCat(
      input.key, " by step, ", what,
      " The line is the mean over the seeds that converged, the band its 95 % interval",
      SeedLinesText(input), ".", TunedText(*input.comparison));
}

std::string ForestCaption(const Comparison& comparison) {
  const bool groups = comparison.reference.has_value() && !comparison.tuned_axes.empty();
  return absl::StrCat(
      "Difference in ", comparison.key,
      " to the baseline: mean and 95 % t-interval over the seeds on which both converged; dots are "
      "single seeds. An interval that crosses 0 decides nothing.",
      groups ? absl::StrCat(" First each setting at its own best ",
                            absl::StrJoin(comparison.tuned_axes, " and "), ", then all at ",
                            absl::StrJoin(comparison.matched[*comparison.reference].labels, ", "),
                            ": each group has a scale of its own.")
             : "");
}

std::string SensitivityCaption(const figure::Input& input) {
  std::string text = absl::StrCat(input.comparison->key, " over ", FirstTuned(*input.comparison));
  const auto sensitivity = figure::ResponsesOf(input);
  if (!sensitivity.ok()) return absl::StrCat(text, ".");
  if (!sensitivity->others.empty()) absl::StrAppend(&text, " at ", sensitivity->others);
  absl::StrAppend(&text, ": mean and 95 % interval at each value tried");
  bool diverged = false, hollow = false;
  for (const figure::Response& setting : sensitivity->settings) {
    for (const figure::ResponsePoint& point : setting.points) {
      diverged = diverged || point.diverged > 0;
      hollow = hollow || (point.diverged > 0 && point.own.mean.defined());
    }
  }
  if (diverged && sensitivity->settings.size() <= figure::kMostInOnePanel) {
    absl::StrAppend(&text, "; the numbers above count runs that diverged");
  }
  return absl::StrCat(
      text, hollow ? ". A hollow point has no interval because a run there diverged." : ".");
}

std::string Caption(absl::string_view kind, const figure::Input& input) {
  const Comparison& comparison = *input.comparison;
  if (kind == "loss") return CurvesCaption(input, absl::StrCat(SmoothText(input), "."));
  if (kind == "windows") {
    return CurvesCaption(
        input,
        absl::StrCat("the first ", input.curves.first_steps, " steps at the left and the last ",
                     input.curves.last_steps, " at the right; ", WindowsSmoothText(input), "."));
  }
  if (kind == "curves") {
    return CurvesCaption(input, absl::StrCat("the mean of all steps so far at the left, ",
                                             SmoothText(input), " at the right."));
  }
  if (kind == "forest") return ForestCaption(comparison);
  if (kind == "sensitivity") return SensitivityCaption(input);
  return absl::StrCat(HasWindows(input) ? "Windows of curves" : comparison.key,
                      " of each setting: mean and 95 % interval over its own converged runs; dots "
                      "are single runs.",
                      TunedText(comparison));
}

// Where each setting's mean ends.
std::string CurvesDescription(const figure::Input& input) {
  std::vector<std::string> ends;
  for (const figure::SettingTracks& setting : input.settings) {
    if (setting.tracks.empty()) continue;
    const std::vector<double>& mean = setting.tracks.back().mean;
    double last = NAN;
    for (const double value : mean) last = std::isfinite(value) ? value : last;
    ends.push_back(
        std::isfinite(last)
            ? absl::StrCat(setting.label, " at ", report::Plain(last, report::DecimalsFor(last)))
            : absl::StrCat(setting.label, " without a mean"));
  }
  return absl::StrCat("Curves of ", input.key, ". They end: ", report::Enumerated(ends), ".");
}

// "pre 2.40, post 2.43".
std::string MeansText(const std::vector<std::string>& labels,
                      const std::vector<const report::Summary*>& summaries) {
  std::vector<std::string> means;
  for (size_t i = 0; i < labels.size(); ++i) {
    const report::Summary& own = *summaries[i];
    if (!own.mean.defined()) continue;
    means.push_back(absl::StrCat(
        labels[i], " ",
        report::Plain(own.mean.value, report::DecimalsFor(own.mean.value, own.interval))));
  }
  return means.empty() ? "none" : report::Enumerated(means, 12);
}

std::string SummaryDescription(const figure::Input& input) {
  std::vector<std::string> labels;
  std::vector<const report::Summary*> own;
  for (const ComparisonRow& row : input.comparison->rows) {
    labels.push_back(row.label);
    own.push_back(&row.own);
  }
  if (!HasWindows(input)) {
    return absl::StrCat("Means of ", input.comparison->key, ": ", MeansText(labels, own), ".");
  }
  std::string text;
  for (size_t window = 0; window < input.windows->windows.size(); ++window) {
    for (size_t row = 0; row < own.size(); ++row) own[row] = &input.windows->rows[row][window].over;
    absl::StrAppend(&text, text.empty() ? "" : " ", "Means of ",
                    report::WindowName(input.windows->windows[window]), ": ",
                    MeansText(labels, own), ".");
  }
  return text;
}

std::string DifferencesText(const std::vector<ComparisonRow>& rows) {
  std::vector<std::string> differences;
  for (const ComparisonRow& row : rows) {
    if (!row.compared()) continue;
    differences.push_back(absl::StrCat(
        row.label, " ", report::SignedWithInterval(row.difference.mean, row.difference.interval),
        row.in_family() ? "" : " (scored on other data)"));
  }
  return report::Enumerated(differences, 12);
}

std::string ForestDescription(const Comparison& comparison) {
  std::string text =
      absl::StrCat("Differences in ", comparison.key, ": ", DifferencesText(comparison.rows), ".");
  if (!comparison.reference.has_value()) return text;
  const report::MatchedBlock& block = comparison.matched[*comparison.reference];
  return absl::StrCat(text, " All at ", absl::StrJoin(block.labels, ", "), ": ",
                      DifferencesText(block.rows), ".");
}

// "pre 2.40 at 0.004, 2.45 at 0.01".
std::string SensitivityDescription(const figure::Input& input) {
  std::string text =
      absl::StrCat("Means of ", input.comparison->key, " over ", FirstTuned(*input.comparison));
  const auto sensitivity = figure::ResponsesOf(input);
  if (!sensitivity.ok()) return absl::StrCat(text, ".");
  std::vector<std::string> settings;
  for (const figure::Response& setting : sensitivity->settings) {
    std::vector<std::string> means;
    for (size_t i = 0; i < setting.points.size(); ++i) {
      const report::Number& mean = setting.points[i].own.mean;
      if (!mean.defined()) continue;
      means.push_back(absl::StrCat(report::Plain(mean.value, report::DecimalsFor(mean.value)),
                                   " at ", sensitivity->labels[i]));
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

std::string Description(absl::string_view kind, const figure::Input& input) {
  if (kind == "forest") return ForestDescription(*input.comparison);
  if (kind == "summary") return SummaryDescription(input);
  if (kind == "sensitivity") return SensitivityDescription(input);
  return CurvesDescription(input);
}

}  // namespace

absl::Span<const FigureKind> ReportKinds() { return kReportKinds; }

Figure WordsOf(const FigureKind& kind, const figure::Input& input) {
  Figure words;
  words.title = std::string(kind.title);
  words.caption = Caption(kind.name, input);
  words.description = Description(kind.name, input);
  words.wide = kind.wide;
  return words;
}

}  // namespace ablate::html
