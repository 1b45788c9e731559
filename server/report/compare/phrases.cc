#include "server/report/compare/phrases.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

constexpr size_t kMaxChoices = 3;

// "lr .004, wd .1", or the labels alone.
std::string ChoiceText(const Choice& choice, const std::vector<std::string>& axes) {
  if (axes.empty()) return ShownValues(choice.labels);
  std::vector<std::string> parts;
  for (size_t i = 0; i < axes.size(); ++i) {
    parts.push_back(absl::StrCat(axes[i], " ", ShownValue(choice.labels[i])));
  }
  return absl::StrJoin(parts, ", ");
}

std::string SeedsText(const Number& seeds) {
  if (!seeds.defined()) return absl::StrCat("more than ", text::Grouped(kMaxSeeds));
  return text::Grouped(static_cast<int64_t>(RoundedSeeds(static_cast<size_t>(seeds.value))));
}

}  // namespace

size_t RoundedSeeds(size_t seeds) {
  size_t unit = 1;
  while (seeds / unit >= 100) unit *= 10;
  return (seeds + unit / 2) / unit * unit;
}

std::string BaselineLabel(const Comparison& comparison, const ComparisonRow& row) {
  return Quoted(comparison.rows[*row.baseline].label);
}

std::string MetricText(const Comparison& comparison) { return NameOfMetric(comparison.key).text; }

std::string DifferenceText(const Comparison& comparison, const ComparisonRow& row) {
  const bool decided = SaysWhichWay(Decide(comparison, row).grade);
  const bool described = row.withheld == Withheld::kExploratory;
  const Number& mean = row.difference.mean;
  const Interval& interval = row.difference.interval;
  return decided || described ? DirectedDifference(comparison.scale, mean, interval)
                              : ShownDifference(comparison.scale, mean, interval);
}

std::string MatchedText(Scale scale, const ComparisonRow& matched) {
  return DirectedDifference(scale, matched.difference.mean, matched.difference.interval);
}

std::string DivergedText(const ComparisonRow& row, const std::string& baseline) {
  const Pairs& pairs = row.pairs;
  const size_t both =
      pairs.all - pairs.converged - pairs.only_row_diverged - pairs.only_baseline_diverged;
  return absl::StrCat(Quoted(row.label), " diverged on ", pairs.only_row_diverged + both, " of ",
                      Counted(pairs.all, "seed"), ", ", baseline, " on ",
                      pairs.only_baseline_diverged + both);
}

std::string OverText(const ComparisonRow& row, const std::string& baseline) {
  if (row.pairs.converged == row.pairs.all) {
    return absl::StrCat("over ", Counted(row.pairs.all, "seed"));
  }
  return absl::StrCat("over the ", row.pairs.converged, " of ", Counted(row.pairs.all, "seed"),
                      " on which both converged (", DivergedText(row, baseline), ")");
}

std::string TunedText(const Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return "";
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  if (comparison.choice_key.empty()) return absl::StrCat(", each at its chosen ", axes);
  return absl::StrCat(", each at the ", axes, " that is best by ",
                      NameOfMetric(comparison.choice_key).text);
}

std::string FamilyText(size_t family) {
  return family > 1 ? absl::StrCat(" with Holm over ", family, " rows") : "";
}

std::string MeasuredText(const Comparison& comparison, const ComparisonRow& row) {
  return absl::StrCat(MetricText(comparison), " ", DifferenceText(comparison, row), " ",
                      OverText(row, BaselineLabel(comparison, row)), TunedText(comparison));
}

std::string SeenText(const Comparison& comparison, const ComparisonRow& row) {
  if (row.pairs.all == 0) {
    const bool both_ran = row.n > 0 && comparison.rows[*row.baseline].n > 0;
    return both_ran ? "they have no seed in common" : "no seed has a result of both";
  }
  if (row.difference.mean.defined()) return MeasuredText(comparison, row);
  return absl::StrCat(DivergedText(row, BaselineLabel(comparison, row)), TunedText(comparison));
}

std::string EvidenceText(const Comparison& comparison, const ComparisonRow& row,
                         const Decision& decision) {
  const std::string seen = SeenText(comparison, row);
  if (row.by_wins) {
    return absl::StrCat(seen, "; ", Quoted(row.label), " won ", row.pairs.wins, " and lost ",
                        row.pairs.losses);
  }
  if (decision.ground != Ground::kConstant) return seen;
  return absl::StrCat(seen, ", the same on every seed, so without an interval");
}

std::string EstablishedText(const Comparison& comparison, const ComparisonRow& row) {
  const size_t pairs = row.tested_pairs();
  const bool least = row.p.value <= std::pow(2.0, 1 - static_cast<double>(pairs)) * (1 + kTie);
  return absl::StrCat(
      AdjustedText(comparison, row),
      least ? absl::StrCat(", the least that ", Counted(pairs, "pair"), " allow") : "");
}

std::string EquivalentText(const Comparison& comparison, const ComparisonRow& row) {
  const std::string within =
      comparison.scale == Scale::kRatio
          ? absl::StrCat("within a factor of ", 1 + *comparison.margin)
          : absl::StrCat("smaller than ", ShownValue(text::ShortestDecimal(*comparison.margin)));
  return absl::StrCat(within, " either way (", PText(row.p_equivalence.value),
                      FamilyText(comparison.family), ")");
}

std::string NotEquivalentText(const Comparison& comparison, const ComparisonRow& row) {
  if (!comparison.margin.has_value() || !row.p_equivalence.defined()) return "";
  return absl::StrCat("not shown to be ", EquivalentText(comparison, row));
}

std::string ProgressText(const Comparison& comparison, const ComparisonRow& row) {
  const ComparisonRow& baseline = comparison.rows[*row.baseline];
  return absl::StrCat(OfRuns(row.cells - row.unfinished, row.cells), ", ", Quoted(baseline.label),
                      " ", baseline.cells - baseline.unfinished, " of ", baseline.cells);
}

std::string AdjustedText(const Comparison& comparison, const ComparisonRow& row) {
  if (!row.p_holm.defined()) return "";
  return absl::StrCat(PText(row.p_holm.value), FamilyText(comparison.family));
}

namespace {

// "cannot reach p < .05 in a sign-flip test with Holm over 2 rows, so this rests on roughly normal
// differences".
std::string TooCoarseText(const Comparison& comparison) {
  return absl::StrCat(
      "cannot reach p < .05 in a sign-flip test", FamilyText(comparison.family),
      ", so this rests on roughly ",
      comparison.scale == Scale::kRatio ? "log-normal ratios" : "normal differences");
}

std::string DecidingSeedsText(const Comparison& comparison) {
  return absl::StrCat(LeastSeedsForSignFlip(comparison.family),
                      " seeds would let the sign-flip test decide");
}

}  // namespace

std::string ProbableText(const Comparison& comparison, const ComparisonRow& row) {
  return absl::StrCat(Counted(row.difference.n, "pair"), " ", TooCoarseText(comparison),
                      " (t-test, ", PText(row.p_t_holm.value), "); ",
                      DecidingSeedsText(comparison));
}

std::string ProbableNote(const Comparison& comparison) {
  const bool any =
      std::any_of(comparison.rows.begin(), comparison.rows.end(), [&](const ComparisonRow& row) {
        return row.compared() && Decide(comparison, row).grade == Grade::kProbable;
      });
  if (!any) return "";
  return absl::StrCat("probably: so few pairs ", TooCoarseText(comparison), "; ",
                      DecidingSeedsText(comparison));
}

namespace {

absl::string_view SeenName(Scale scale) { return scale == Scale::kRatio ? "ratio" : "difference"; }

// "the least difference that 12 seeds would find with 80 % power is .009", "the least ratio … is a
// factor of 1.08".
std::string DetectableText(Scale scale, const ComparisonRow& row) {
  const Number least = OffScale(scale, row.least_detectable);
  if (!least.defined()) return "";
  const bool ratio = scale == Scale::kRatio;
  return absl::StrCat("the least ", ratio ? "ratio" : "difference", " that ",
                      Counted(row.difference.n, "seed"), " would find with 80 % power is ",
                      ratio ? absl::StrCat("a factor of ", ShownFactor(least.value))
                            : Plain(least.value, DecimalsFor(least.value)));
}

}  // namespace

std::string PowerText(const Comparison& comparison, const ComparisonRow& row) {
  const size_t family = comparison.family;
  const size_t least = LeastSeedsForSignFlip(family);
  if (!row.needed.known()) {
    if (row.pairs.all >= least) return "how many seeds would decide cannot be foretold";
    return absl::StrCat("at least ", Counted(least, "seed"), " are needed");
  }
  std::string detectable = DetectableText(comparison.scale, row);
  if (detectable.empty()) {
    detectable = absl::StrCat(Counted(row.difference.n, "pair"),
                              " cannot reach p < .05 in a sign-flip test", FamilyText(family));
  }
  const std::string low = SeedsText(row.needed.low), high = SeedsText(row.needed.high);
  if (!row.needed.estimate.defined()) {
    return absl::StrCat(detectable, "; the ", SeenName(comparison.scale), " seen takes more than ",
                        text::Grouped(kMaxSeeds), " seeds",
                        row.needed.low.defined() ? absl::StrCat(", at best ", low) : "");
  }
  return absl::StrCat(detectable, "; the ", SeenName(comparison.scale), " seen takes about ",
                      SeedsText(row.needed.estimate), row.chosen.empty() ? "" : " or more",
                      " seeds (", low, " to ", high, ")");
}

std::string ChosenText(const ComparisonRow& row, const std::vector<std::string>& axes) {
  if (row.chosen.empty()) return "";
  if (row.chosen.size() == 1) return ChoiceText(row.chosen[0], axes);
  std::vector<Choice> choices = row.chosen;
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.seeds > b.seeds; });
  size_t seeds = 0;
  for (const Choice& choice : choices) seeds += choice.seeds;
  std::vector<std::string> parts;
  const std::vector<std::string> unnamed;
  for (size_t i = 0; i < std::min(choices.size(), kMaxChoices); ++i) {
    const bool named = i == 0 || axes.size() > 1;  // one axis is named once
    parts.push_back(absl::StrCat(ChoiceText(choices[i], named ? axes : unnamed), " (",
                                 choices[i].seeds, "/", seeds, ")"));
  }
  if (choices.size() > kMaxChoices) {
    parts.push_back(absl::StrCat(choices.size() - kMaxChoices, " more"));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace ablate::report
