// What a report says about each kind of figure: title, caption, and a description for those who
// can't see it.
#include "server/report/html/figure_words.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

std::string CurvesCaption(const figure::Input& input, absl::string_view what) {
  return absl::StrCat(
      input.key, " by step, ", what,
      " The line is the mean over the seeds that converged, the band its 95 % interval; thin "
      "lines are single runs, those that diverged included.",
      TunedText(*input.comparison));
}

std::string Caption(absl::string_view kind, const figure::Input& input) {
  const Comparison& comparison = *input.comparison;
  if (kind == "loss") return CurvesCaption(input, absl::StrCat(SmoothText(input), "."));
  if (kind == "windows") {
    return CurvesCaption(
        input,
        absl::StrCat("the first ", input.curves.first_steps, " steps at the left and the last ",
                     input.curves.last_steps, " at the right; ", SmoothText(input), "."));
  }
  if (kind == "curves") {
    return CurvesCaption(input, absl::StrCat("the mean of all steps so far at the left, ",
                                             SmoothText(input), " at the right."));
  }
  if (kind == "forest") {
    return absl::StrCat("Difference in ", comparison.key,
                        " to the baseline: mean and 95 % t-interval over the seeds on which both "
                        "converged; dots are "
                        "single seeds. An interval that crosses 0 decides nothing.");
  }
  if (kind == "sensitivity") {
    return absl::StrCat(comparison.key, " over ", absl::StrJoin(comparison.tuned_axes, ", "),
                        ": mean and 95 % interval at each value tried; the numbers above count "
                        "runs that diverged. A "
                        "hollow point has no interval because a run there diverged.");
  }
  const bool windows = input.windows != nullptr && !input.windows->windows.empty();
  return absl::StrCat(windows ? "Windows of curves" : comparison.key,
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

std::string RowsDescription(const Comparison& comparison, bool differences) {
  std::vector<std::string> rows;
  for (const ComparisonRow& row : comparison.rows) {
    if (differences && !row.compared()) continue;
    if (differences) {
      rows.push_back(
          absl::StrCat(row.label, " ",
                       report::SignedWithInterval(row.difference.mean, row.difference.interval)));
    } else if (row.own.mean.defined()) {
      rows.push_back(
          absl::StrCat(row.label, " ",
                       report::Plain(row.own.mean.value,
                                     report::DecimalsFor(row.own.mean.value, row.own.interval))));
    }
  }
  return absl::StrCat(report::Enumerated(rows, 12), ".");
}

std::string Description(absl::string_view kind, const figure::Input& input) {
  const Comparison& comparison = *input.comparison;
  if (!input.settings.empty()) return CurvesDescription(input);
  if (kind == "forest") {
    return absl::StrCat("Differences in ", comparison.key, ": ", RowsDescription(comparison, true));
  }
  if (kind == "summary") {
    return absl::StrCat("Means of ", comparison.key, ": ", RowsDescription(comparison, false));
  }
  return absl::StrCat("The means of ", comparison.key, " over ",
                      absl::StrJoin(comparison.tuned_axes, ", "),
                      "; the same numbers are in the table at one shared value.");
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
