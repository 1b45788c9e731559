#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;

std::string PairsText(const Comparison& comparison, bool shared_weights) {
  const bool ratio = comparison.scale == report::Scale::kRatio;
  const std::string metric = report::NameOfMetric(comparison.key).text;
  return absl::StrCat(
      "Runs with the same seed share ",
      shared_weights ? "the initial weights that their settings have in common and " : "",
      "the order of their data. So settings are compared seed by seed: ",
      ratio ? absl::StrCat("the ratio is the geometric mean, over the seeds on which both runs "
                           "converged, of the setting's ",
                           metric,
                           " by its baseline's, for what is positive and spans decades is "
                           "compared by factors. Everything is computed on natural logarithms: "
                           "the differences below are of them, and a setting's own mean, over the "
                           "same seeds, is geometric, too. ")
            : absl::StrCat("Δ is the mean, over the seeds on which both runs converged, of the "
                           "setting's ",
                           metric,
                           " minus its baseline's, and a setting's mean in the main table "
                           "is over the same seeds. "),
      "The interval of ", ratio ? "the ratio " : "Δ ",
      IsRechosen(comparison)
          ? "reaches from the least to the largest shift of the setting's values that the "
            "test below does not reject at 5 %"
          : "is Student's t with n − 1 degrees of freedom at 95 %; it treats the seeds as a "
            "sample of all seeds and the differences as roughly normal",
      ". Effect d_z is the mean of the "
      "differences over their "
      "standard deviation. r of pairs is the correlation of the two settings over the seeds: where "
      "it is near 0, "
      "pairing gains nothing.");
}

std::string TestsText(const Comparison& comparison) {
  const bool sampled = std::any_of(
      comparison.rows.begin(), comparison.rows.end(), [](const report::ComparisonRow& row) {
        return row.compared() && row.difference.p_sign_flip.defined() && !row.difference.exact;
      });
  return absl::StrCat(
      "The p value does not need normality: it is the share of all patterns of signs, given to the "
      "differences, "
      "whose Student's t is at least as far from 0 as the one observed (two-sided",
      sampled ? "; of so many pairs patterns are drawn" : "; every pattern is counted",
      "). It takes the differences to be as likely one way as the other around their mean. With ",
      comparison.family == 1 ? "one comparison" : absl::StrCat(comparison.family, " comparisons"),
      " it can reach .05 from ",
      report::Counted(report::LeastSeedsForSignFlip(std::max<size_t>(1, comparison.family)),
                      "pair"),
      " on. Holm's adjustment is over the ", report::Counted(comparison.family, "row"), " that ",
      comparison.family == 1 ? "is" : "are",
      " compared: it bounds the chance of one or more false findings among them. Beside the "
      "interval a bias-corrected "
      "and accelerated bootstrap (BCa, 10,000 resamples of the seeds) is computed; ablate compare "
      "--json prints it.");
}

std::string TunedSentence(const Comparison& comparison) {
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  return absl::StrCat(
      "Each setting has its own ", axes, ", chosen ", comparison.choice_key.empty() ? "" : "by ",
      comparison.choice_key.empty() ? "" : report::NameOfMetric(comparison.choice_key).text,
      comparison.choice_key.empty() ? "" : " ",
      "for each seed on the setting's other seeds (leave one seed out): "
      "the value with the best mean there, so that no run is judged by a choice "
      "that it took part in. A value at "
      "which a run diverged counts as the worst. ",
      IsRechosen(comparison)
          ? "Choosing lowers what is chosen, so the choice is made again under every pattern of "
            "signs, with the flipped seeds' runs of the two settings exchanged at all values. That "
            "is exact where the two settings are alike at all values; where they are so at their "
            "own best ones alone, simulations tell them apart in up to 13 % of experiments."
          : "",
      comparison.matched.empty()
          ? ""
          : absl::StrCat(" The table at one shared ", axes, " has no such choice."));
}

// Returns the exceptions: rows tested otherwise than by the difference.
std::string ExceptionsText(const Comparison& comparison) {
  const auto any = [&comparison](bool (*holds)(const report::ComparisonRow&)) {
    return std::any_of(
        comparison.rows.begin(), comparison.rows.end(),
        [holds](const report::ComparisonRow& row) { return row.compared() && holds(row); });
  };
  std::string text;
  if (any([](const auto& row) { return row.by_wins; })) {
    text +=
        " Where on some seed only one of the two diverged, the test is of the wins over all pairs, "
        "for which a diverged run loses; what is better where both converge and diverges more "
        "often "
        "is inconclusive.";
  }
  if (any([](const auto& row) {
        return row.difference.deviation.undefined == report::Undefined::kZeroVariance;
      })) {
    text +=
        " Differences that are the same on every seed have no interval, and values that are "
        "identical are inconclusive.";
  }
  return text;
}

std::string MarginText(const Comparison& comparison) {
  if (!comparison.margin.has_value()) return "";
  const bool ratio = comparison.scale == report::Scale::kRatio;
  return absl::StrCat(
      "It is equivalent where two one-sided tests, adjusted by Holm, too, reject that the ",
      ratio ? absl::StrCat("ratio is beyond a factor of ", 1 + *comparison.margin)
            : absl::StrCat("difference is beyond ",
                           report::ShownValue(text::ShortestDecimal(*comparison.margin))),
      " either way, the margin that the spec gave. The 95 % interval that is shown is wider than "
      "these tests ask for. ");
}

std::string VerdictText(const Comparison& comparison) {
  return absl::StrCat(
      "A setting is called ",
      comparison.better == report::Better::kNeither ? "higher or lower" : "better or worse",
      " where the adjusted p is at most .05 (established), or, with too few pairs for that test, "
      "where the adjusted paired t-test is (probable); it leans where only its own p is. ",
      MarginText(comparison),
      "All else is inconclusive, which is never called equal. There is no verdict before every run "
      "has "
      "ended, below three pairs, between runs that are scored on different data, and of another "
      "metric or step than the planned one.",
      ExceptionsText(comparison),
      " The number of seeds is what establishes the difference seen in 80 % of experiments, were "
      "its mean and spread to stay as they are (noncentral t at the level of Holm's first step); "
      "its range is that of the effect's 80 % interval.");
}

std::string DivergenceText() {
  return "A run has diverged if a loss became infinite or not a number, or if its final evaluation "
         "is worse than both "
         "a uniform guess and its own evaluation at step 0. Diverged runs are counted and never "
         "averaged: means, "
         "intervals and effects are over pairs of runs that both converged, wins are over all "
         "pairs, and a diverged "
         "run loses.";
}

}  // namespace

void MethodsSection(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  OpenFolded(place, "methods", "How this was computed", out);
  if (comparison.family > 0) {
    out->Element("p", PairsText(comparison, experiment.shared_weights));
    out->Element("p", TestsText(comparison));
  }
  if (!comparison.tuned_axes.empty()) out->Element("p", TunedSentence(comparison));
  if (comparison.family > 0) out->Element("p", VerdictText(comparison));
  out->Element("p", DivergenceText());
  CloseFolded(out);
}

}  // namespace ablate::html
