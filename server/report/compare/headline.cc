#include "server/report/compare/headline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

// "1.7 % of “pre”": of what the baseline has on average; "" where that says nothing, as of a ratio,
// which is a share already.
std::string ShareText(const Comparison& comparison, const ComparisonRow& row) {
  if (comparison.scale == Scale::kRatio) return "";
  const ComparisonRow& baseline = comparison.rows[*row.baseline];
  if (!baseline.own.mean.defined() || !row.difference.mean.defined()) return "";
  if (!(baseline.own.mean.value > 0)) return "";
  const double percent = 100 * std::abs(row.difference.mean.value) / baseline.own.mean.value;
  if (!(percent >= .05) || percent >= 1000) return "";
  return absl::StrCat(Plain(percent, percent < 10 ? 1 : 0), " % of ", Quoted(baseline.label));
}

// "better on 8 of 8 seeds", or of a row that is the worse one "worse on 7 of 8 seeds": how many
// seeds agree with its direction. "" if none does, or if neither direction is better.
std::string AgreeingText(const Comparison& comparison, const ComparisonRow& row, int toward) {
  const bool worse = toward < 0;
  const size_t agreeing = worse ? row.pairs.losses : row.pairs.wins;
  if (comparison.better == Better::kNeither || agreeing == 0) return "";
  return absl::StrCat(worse ? "worse on " : "better on ", agreeing, " of ",
                      Counted(row.pairs.all, "seed"));
}

// Of a row that is decided or leans: which way, by how much.
void PutDirection(const Comparison& comparison, const ComparisonRow& row, Headline* headline) {
  const auto [by, interval] = BeforeInterval(DifferenceText(comparison, row));
  const std::string agreeing = AgreeingText(comparison, row, headline->decision.toward);
  const bool probable = headline->decision.grade == Grade::kProbable;
  const bool leans = headline->decision.grade == Grade::kLeans;
  const absl::string_view hedge = probable ? "probably " : leans ? "leans " : "";
  if (row.by_wins) {
    headline->lead = Capitalized(
        absl::StrCat(hedge, DirectionName(headline->decision.toward, comparison.better), ":"));
    headline->rest = DivergedText(row, BaselineLabel(comparison, row));
    // If no pair converged, there is no difference beside the counts of divergences.
    if (row.difference.mean.defined()) {
      headline->rest =
          Together({headline->rest, agreeing,
                    absl::StrCat(DifferenceText(comparison, row), " where both converged")},
                   "; ");
    }
    return;
  }
  const std::string size =
      LeavesOutZero(row.difference.interval)
          ? by
          : DirectedSize(comparison.scale, row.difference.mean.value, row.difference.interval);
  headline->lead = Capitalized(absl::StrCat(hedge, size));
  const std::string constant = headline->decision.ground == Ground::kConstant
                                   ? "the same on every seed, so without an interval"
                                   : "";
  headline->rest =
      Together({Together({interval, constant, ShareText(comparison, row)}, ", "), agreeing}, "; ");
}

// Of a row without a verdict: why, and what is known all the same.
void PutWithheld(const Comparison& comparison, const ComparisonRow& row, Headline* headline) {
  const std::string seen =
      row.difference.mean.defined() ? DifferenceText(comparison, row) : SeenText(comparison, row);
  switch (row.withheld) {
    case Withheld::kScoredDifferently:
      headline->lead = "Not comparable:";
      headline->rest = absl::StrCat("scored on other ", ScoredText(comparison.key), " (",
                                    Enumerated(row.scored_differently), ")");
      return;
    case Withheld::kUnfinished:
      headline->lead = "No verdict yet:";
      headline->rest = absl::StrCat(ProgressText(comparison, row), "; ", seen, " so far");
      return;
    case Withheld::kExploratory:
      headline->lead = "Exploratory:";
      headline->rest = seen;
      return;
    case Withheld::kTooFewPairs:
    case Withheld::kNo:
      break;
  }
  headline->lead = "No verdict:";
  headline->rest = absl::StrCat("fewer than ", kLeastPairs, " pairs; ", seen);
  headline->facts.push_back(absl::StrCat("at least ",
                                         Counted(LeastSeedsForSignFlip(comparison.family), "seed"),
                                         " are needed to establish anything"));
}

void PutInconclusive(const Comparison& comparison, const ComparisonRow& row, Headline* headline) {
  headline->lead = "Inconclusive:";
  switch (headline->decision.ground) {
    case Ground::kConflict: {
      const bool more = row.pairs.only_row_diverged > row.pairs.only_baseline_diverged;
      headline->rest =
          absl::StrCat(DifferenceText(comparison, row), " where both converged, but it diverges ",
                       more ? "more" : "less", " often (",
                       DivergedText(row, BaselineLabel(comparison, row)), ")");
      headline->facts.emplace_back("more seeds would not say which of the two counts");
      return;
    }
    case Ground::kIdentical:
      headline->rest = absl::StrCat("identical ", OverText(row, BaselineLabel(comparison, row)));
      headline->facts.emplace_back("see whether the setting takes effect");
      return;
    case Ground::kNonFinite:
      headline->rest = "the differences are too large to compute with";
      return;
    default:
      break;
  }
  const bool seen = row.difference.mean.defined() && !row.by_wins;
  headline->rest = Together(
      {seen ? DifferenceText(comparison, row) : DivergedText(row, BaselineLabel(comparison, row)),
       AgreeingText(comparison, row, headline->decision.toward)},
      "; ");
  for (std::string text : {AdjustedText(comparison, row), NotEquivalentText(comparison, row),
                           PowerText(comparison, row)}) {
    if (!text.empty()) headline->facts.push_back(std::move(text));
  }
}

// "at the shared lr .01 it is higher by .317: most of that is the lr"; "" where nothing is
// tuned or the row is not there.
std::string SharedText(const Comparison& comparison, const ComparisonRow& row) {
  if (!comparison.reference.has_value()) return "";
  const MatchedBlock& block = comparison.matched[*comparison.reference];
  const auto matched =
      std::find_if(block.rows.begin(), block.rows.end(),
                   [&row](const ComparisonRow& one) { return one.labels == row.labels; });
  if (matched == block.rows.end() || !matched->difference.mean.defined()) return "";
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  const Interval& there = matched->difference.interval;
  std::string text = absl::StrCat("at the shared ", axes, " ", ShownValues(block.labels), " it is ",
                                  BeforeInterval(MatchedText(comparison.scale, *matched)).first);
  if (!LeavesOutZero(there) || !row.difference.mean.defined()) return text;
  const double share = row.difference.mean.value / matched->difference.mean.value;
  if (share < 0 && LeavesOutZero(row.difference.interval)) {
    absl::StrAppend(&text, ": the sign depends on the ", axes);
  } else if (std::abs(share) < 0.5) {
    const absl::string_view part = share > 0 && share < .05   ? "nearly all"
                                   : share > 0 && share < .15 ? "nine tenths"
                                                              : "most";
    absl::StrAppend(&text, ": ", part, " of that is due to the ", axes);
  }
  return text;
}

}  // namespace

Headline HeadlineOf(const Comparison& comparison, size_t index) {
  const ComparisonRow& row = comparison.rows[index];
  Headline headline;
  headline.decision = Decide(comparison, row);
  if (const std::string chosen = ChosenText(row, comparison.tuned_axes); !chosen.empty()) {
    headline.facts.push_back(absl::StrCat("at ", chosen));
  }
  switch (headline.decision.grade) {
    case Grade::kNoVerdict:
      PutWithheld(comparison, row, &headline);
      break;
    case Grade::kInconclusive:
      PutInconclusive(comparison, row, &headline);
      break;
    case Grade::kLeans:
      PutDirection(comparison, row, &headline);
      headline.facts.push_back(
          absl::StrCat(PText(row.p.value), " alone, but ", AdjustedText(comparison, row)));
      headline.facts.push_back(PowerText(comparison, row));
      break;
    case Grade::kEquivalent:
      headline.lead = "Equivalent:";
      headline.rest = Together({DifferenceText(comparison, row),
                                AgreeingText(comparison, row, headline.decision.toward)},
                               "; ");
      break;
    case Grade::kProbable:
      PutDirection(comparison, row, &headline);
      headline.facts.push_back(absl::StrCat(PText(row.p_t_holm.value),
                                            FamilyText(comparison.family), ", by the t-test"));
      break;
    case Grade::kEstablished:
      PutDirection(comparison, row, &headline);
      headline.facts.push_back(EstablishedText(comparison, row));
      break;
  }
  if (headline.decision.equivalent) headline.facts.push_back(EquivalentText(comparison, row));
  const bool judged = headline.decision.grade != Grade::kNoVerdict;
  if (const std::string shared = SharedText(comparison, row); judged && !shared.empty()) {
    headline.facts.push_back(shared);
  }
  return headline;
}

std::string MeasuredIn(const Comparison& comparison) {
  const MetricName name = NameOfMetric(comparison.key);
  std::vector<std::string> remarks;
  if (!name.unit.empty()) {
    remarks.push_back(name.per.empty() ? name.unit : absl::StrCat(name.unit, " per ", name.per));
  }
  if (comparison.scale == Scale::kRatio) remarks.emplace_back("compared as ratios");
  remarks.emplace_back(comparison.better == Better::kLower    ? "lower is better"
                       : comparison.better == Better::kHigher ? "higher is better"
                                                              : "neither direction is better");
  const bool is_key = absl::StrContains(name.text, '/');
  return absl::StrCat(is_key ? name.text : Capitalized(name.text), " (",
                      absl::StrJoin(remarks, ", "), ")");
}

}  // namespace ablate::report
