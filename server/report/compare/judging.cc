#include "server/report/compare/judging.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "server/report/compare/looks.h"
#include "server/report/compare/paired.h"
#include "server/report/compare/power.h"
#include "server/report/compare/reselection.h"

namespace ablate::report {

Measure MeasureOf(const ComparisonInput& input) {
  if (input.scale == Scale::kDifference) {
    return {input.better, input.scale, input.margin, input.unit};
  }
  if (HasNotPositive(input)) return {input.better, Scale::kDifference, std::nullopt};
  Measure measure{input.better, input.scale, std::nullopt};
  if (input.margin.has_value()) measure.margin = std::log1p(*input.margin);
  return measure;
}

void Judge(const Measure& measure, ComparisonRow* row) {
  const Pairs& pairs = row->pairs;
  row->by_wins = measure.better != Better::kNeither &&
                 pairs.only_row_diverged + pairs.only_baseline_diverged > 0;
  row->p = row->by_wins ? SignTest(pairs.wins, pairs.losses) : row->difference.p_sign_flip;
  row->exact = row->by_wins || row->difference.exact;
  if (measure.margin.has_value()) {
    row->p_equivalence = EquivalenceTest(row->difference, *measure.margin);
  }
}

namespace {

// Returns the losses of the seeds on which all candidates of both settings have a result, [seed]
// [candidate].
std::vector<std::vector<double>> LossesOf(const std::vector<Trial>& trials, const TunedPair& pair,
                                          Better better) {
  std::vector<std::vector<double>> losses;
  for (size_t seed = 0; seed < pair.seeds; ++seed) {
    std::vector<double> row;
    for (size_t i = 0; i < pair.candidates; ++i) {
      const size_t place = i * pair.seeds + seed;
      const bool whole = pair.setting[place].state != Trial::State::kNone &&
                         pair.baseline[place].state != Trial::State::kNone;
      if (!whole) break;
      const double sign = better == Better::kHigher ? -1 : 1;
      row.push_back(trials[place].state == Trial::State::kDiverged ? INFINITY
                                                                   : sign * trials[place].value);
    }
    if (row.size() == pair.candidates) losses.push_back(std::move(row));
  }
  return losses;
}

// Looks at a tuned row: each p is the larger one of its two sequences of differences.
std::optional<Looks> LookAtTuned(const TunedPair& pair, Better better) {
  if (!pair.setting_choices.empty()) return std::nullopt;
  const TunedLooks differences = SelectOnEarlierSeeds(LossesOf(pair.setting, pair, better),
                                                      LossesOf(pair.baseline, pair, better));
  if (differences.selected.empty()) return std::nullopt;
  Looks looks = LookAtEachPair(differences.selected, Better::kLower);
  const Looks other = LookAtEachPair(differences.exchangeable, Better::kLower);
  if (other.LogBetter() < looks.LogBetter()) looks.better = other.better;
  if (other.LogWorse() < looks.LogWorse()) looks.worse = other.worse;
  looks.p = std::max(looks.p, other.p);
  looks.p_better = std::max(looks.p_better, other.p_better);
  looks.p_worse = std::max(looks.p_worse, other.p_worse);
  return looks;
}

}  // namespace

void JudgeTuned(const ComparisonInput& input, const Measure& measure, const GridRow& grid_row,
                const GridRow& baseline, ComparisonRow* row) {
  ReselectionOptions options;
  options.margin = measure.margin;
  const TunedPair pair = PairTrials(input, measure.scale, grid_row, baseline);
  const ReselectionResult test = TestByReselection(pair, measure.better, options);
  row->looks = LookAtTuned(pair, measure.better);
  PairedStatistics& difference = row->difference;
  if (difference.p_sign_flip.defined()) {
    difference.p_sign_flip = test.p_difference;
    difference.exact = test.exact;
  }
  if (difference.interval.defined() && test.interval.defined()) {
    difference.interval = test.interval;
    difference.by_reselection = true;
  }
  if (row->p_equivalence.defined()) row->p_equivalence = test.p_equivalence;
  if (row->p.defined()) {
    row->p_selected = row->p;
    row->p = row->by_wins ? test.p_wins : difference.p_sign_flip;
    row->exact = test.exact;
  }
}

size_t AdjustFamily(const std::vector<ComparisonRow*>& rows) {
  std::vector<ComparisonRow*> family;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(family),
               [](const ComparisonRow* row) { return row->in_family(); });
  std::vector<Number> p, p_t, p_equivalence;
  for (const ComparisonRow* row : family) {
    p.push_back(row->p);
    const Number by_wins = NoNumber(Undefined::kTestedByWins);
    const bool has_margin = row->p_equivalence.undefined != Undefined::kNotRecorded;
    p_t.push_back(row->by_wins ? by_wins : row->difference.p_t);
    p_equivalence.push_back(row->by_wins && has_margin ? by_wins : row->p_equivalence);
  }
  const std::vector<Number> adjusted = HolmAdjust(p), adjusted_t = HolmAdjust(p_t),
                            adjusted_equivalence = HolmAdjust(p_equivalence);
  for (size_t i = 0; i < family.size(); ++i) {
    family[i]->p_holm = adjusted[i];
    family[i]->p_t_holm = adjusted_t[i];
    family[i]->p_equivalence = adjusted_equivalence[i];
  }
  for (ComparisonRow* row : rows) {
    if (row->compared() && !row->in_family()) {
      row->p_holm = row->p_t_holm = row->p_equivalence = NoNumber(Undefined::kScoredDifferently);
    }
  }
  return family.size();
}

void FindPower(size_t family, std::vector<ComparisonRow>* rows) {
  for (ComparisonRow& row : *rows) {
    if (!row.in_family() || row.by_wins || !row.difference.effect.defined()) continue;
    row.needed = FindSeedsNeeded(row.difference.effect, row.difference.n, family);
    // Both diverge on the other seeds, which count as seeds, too.
    const double seeds_a_pair =
        static_cast<double>(row.pairs.all) / static_cast<double>(row.pairs.converged);
    for (Number* seeds : {&row.needed.estimate, &row.needed.low, &row.needed.high}) {
      if (seeds->defined()) seeds->value = std::ceil(seeds->value * seeds_a_pair);
    }
    row.least_detectable = LeastDetectableEffect(row.difference.n, family);
    if (row.least_detectable.defined()) {
      row.least_detectable.value *= row.difference.deviation.value;
    }
  }
}

}  // namespace ablate::report
