#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;

// Returns "seeds", "sequences".
std::string UnitsOf(const Comparison& comparison) {
  return absl::StrCat(report::UnitName(comparison.unit), "s");
}

// Returns why pairs are pairs.
std::string DesignText(const Comparison& comparison, bool shared_weights) {
  if (comparison.unit != report::Unit::kSeed) {
    return absl::StrCat(
        "Paired design: each setting has one model, and all models read the same sequences, so "
        "settings are compared sequence by sequence. A sequence's value is its sum over targets, "
        "times the number of sequences, divided by the number of all targets; the mean of these "
        "values is the metric. ");
  }
  if (comparison.source == report::MetricSource::kProgram) {
    return "Paired design: settings are compared seed by seed, because runs with the same seed "
           "share whatever the program derives from it. ";
  }
  return absl::StrCat(
      "Paired design: runs with the same seed share ",
      shared_weights ? "the initial weights that their settings have in common and " : "",
      "the order of their data, so settings are compared seed by seed. ");
}

std::string PairsText(const Comparison& comparison, bool shared_weights) {
  const bool ratio = comparison.scale == report::Scale::kRatio;
  const std::string metric = comparison.Metric().text;
  const std::string units = UnitsOf(comparison);
  return absl::StrCat(
      DesignText(comparison, shared_weights),
      ratio ? absl::StrCat("The metric is positive and spans decades, so it is compared by ratios: "
                           "the ratio is the geometric mean, over the seeds on which both runs "
                           "converged, of the setting's ",
                           metric,
                           " divided by its baseline's. All statistics are computed on natural "
                           "logarithms: the differences below are differences of logarithms, and a "
                           "setting's mean, over the same seeds, is geometric too. ")
            : absl::StrCat(
                  "Δ is the mean, over the ", units,
                  comparison.unit == report::Unit::kSeed ? " on which both runs converged" : "",
                  ", of the setting's ", metric,
                  " minus its baseline's. A setting's mean in the main table is over the same ",
                  units, ". "),
      "The 95 % interval of ", ratio ? "the ratio " : "Δ ",
      IsReselected(comparison)
          ? "is obtained by inverting the test below: it reaches from the smallest to the largest "
            "shift of the setting's values that the test does not reject at the 5 % level"
          : absl::StrCat("is Student's t with n − 1 degrees of freedom; it assumes that the ",
                         units, " are a random sample and that the differences are roughly normal"),
      ". Cohen's d_z is the mean of the differences divided by their standard deviation. Pearson r "
      "is the correlation of the two settings over the ",
      units, "; near 0, pairing gains nothing.");
}

std::string TestsText(const Comparison& comparison) {
  const bool sampled = std::any_of(
      comparison.rows.begin(), comparison.rows.end(), [](const report::ComparisonRow& row) {
        return row.compared() && row.difference.p_sign_flip.defined() && !row.difference.exact;
      });
  return absl::StrCat(
      "Test: a two-sided sign-flip permutation test on Student's t. p is the share of sign "
      "patterns of the differences whose |t| is at least the observed one; ",
      sampled ? "for so many pairs, patterns are sampled" : "all patterns are enumerated",
      ". The test does not assume normality. It assumes exchangeability: if the settings do not "
      "differ, it does not matter on any ",
      report::UnitName(comparison.unit), " which run has which setting. With ",
      comparison.family == 1 ? "one comparison" : absl::StrCat(comparison.family, " comparisons"),
      ", p can reach 0.05 from ",
      report::Counted(report::LeastSeedsForSignFlip(std::max<size_t>(1, comparison.family)),
                      "pair"),
      " on. ",
      comparison.family == 1 ? ""
                             : absl::StrCat("Holm's adjustment for the ", comparison.family,
                                            " comparisons controls the family-wise error rate, the "
                                            "probability of one or more false findings. "),
      "ablate compare --json also prints a bias-corrected and accelerated bootstrap interval (BCa, "
      "10,000 resamples of the ",
      UnitsOf(comparison), ").");
}

std::string TunedSentence(const Comparison& comparison) {
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  return absl::StrCat(
      "Tuning: each setting has its own ", axes, ", selected by leave-one-seed-out",
      comparison.choice_key.empty() ? "" : absl::StrCat(" on ", comparison.ChoiceMetric().text),
      ": for each seed, the value with the best mean over the setting's other seeds. So no run "
      "influences the selection that it is evaluated with. A value at which a run diverged ranks "
      "last.",
      IsReselected(comparison)
          ? " Selection makes results look better than they are (selection bias), so the "
            "permutation test repeats it: for every sign pattern, the two settings exchange their "
            "runs at all values on the flipped seeds, and both select again. The test is exact if "
            "the settings are exchangeable at all values. If they are equal only at their own best "
            "values, its error rate was up to 13 % in simulations, instead of 5 %."
          : "",
      comparison.matched.empty()
          ? ""
          : absl::StrCat(" The table at one shared ", axes, " involves no selection."));
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
        " If only one of the two runs diverged on some seed, the test is on wins minus losses over "
        "all pairs (a sign test), and a diverged run loses. A setting that is better when both "
        "converge but diverges more often is inconclusive.";
  }
  if (any([](const auto& row) {
        return row.difference.deviation.undefined == report::Undefined::kZeroVariance;
      })) {
    absl::StrAppend(&text, " Differences that are equal on all ", UnitsOf(comparison),
                    " have no interval, and identical values are inconclusive.");
  }
  return text;
}

std::string MarginText(const Comparison& comparison) {
  if (!comparison.margin.has_value()) return "";
  const bool ratio = comparison.scale == report::Scale::kRatio;
  return absl::StrCat(
      "It is equivalent if two one-sided tests (TOST), also Holm-adjusted, reject a ",
      ratio ? absl::StrCat("ratio beyond a factor of ", 1 + *comparison.margin, " either way")
            : absl::StrCat("difference beyond ±", text::ShortestDecimal(*comparison.margin)),
      ", the margin in the spec. The 95 % interval shown is wider than these tests need. ");
}

std::string VerdictText(const Comparison& comparison) {
  return absl::StrCat(
      "Grades: a setting is ",
      comparison.better == report::Better::kNeither ? "higher or lower" : "better or worse",
      " (established) if the adjusted p is at most 0.05. It is probably so (probable) if there are "
      "too few pairs for that, but the adjusted p of the paired t-test is at most 0.05",
      comparison.tuned_axes.empty() ? "" : " and each setting's selection is the same on all seeds",
      ". It leans if only its unadjusted p is at most 0.05. ",
      IsReselected(comparison)
          ? "Established and leaning differences also need p of at most 0.2 in the same test of "
            "the selected runs alone, without reselection. A difference is only probable if the "
            "runs of the setting, or of the baseline, vary at least twice as much as the other's "
            "and selected several values, from seven pairs on. "
          : "",
      MarginText(comparison),
      "Everything else is inconclusive, which does not mean equal. There is no verdict before all "
      "runs have ended, with fewer than three pairs, for settings evaluated on different data, and "
      "for another metric or step than planned.",
      ExceptionsText(comparison));
}

std::string PowerText(const Comparison& comparison) {
  return absl::StrCat(
      "Power: the number of ", UnitsOf(comparison),
      " needed is the one that establishes the observed difference with 80 % power if its mean and "
      "standard deviation stay the same (noncentral t at the level of Holm's first step). Its "
      "range corresponds to the 80 % interval of the effect size.",
      IsReselected(comparison) ? " With tuned axes, somewhat more seeds are needed." : "");
}

std::string DivergenceText(const Comparison& comparison) {
  return absl::StrCat(
      "Divergence: a run diverged if ",
      comparison.source == report::MetricSource::kProgram
          ? "its last value of the metric is infinite or not a number"
          : "a loss became infinite or not a number, or if its final evaluation is worse than both "
            "a uniform guess and its own evaluation at step 0",
      ". Diverged runs are counted but never averaged: ",
      comparison.unit != report::Unit::kSeed
          ? "a setting whose run diverged has no pairs."
          : "means, intervals and effect sizes are over pairs of runs that both converged. Wins "
            "are over all pairs, and a diverged run loses.");
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
  if (comparison.family > 0) {
    out->Element("p", VerdictText(comparison));
    out->Element("p", PowerText(comparison));
  }
  out->Element("p", DivergenceText(comparison));
  CloseFolded(out);
}

}  // namespace ablate::html
