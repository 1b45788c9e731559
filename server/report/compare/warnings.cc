#include "server/report/compare/warnings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/grid.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/selection.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

// The data of all checks.
struct Facts {
  const ComparisonInput& input;
  const CellGrid& grid;
  const std::vector<Selection>& selections;
  const Comparison& comparison;
};

using Parts = std::vector<std::string>;
using Warnings = std::vector<Warning>;

// Returns "<opening> a, b and c", or nothing if no row has a part.
Warnings Spoken(WarningKind kind, absl::string_view opening, const Parts& parts) {
  if (parts.empty()) return {};
  return {{kind, absl::StrCat(opening, Enumerated(parts))}};
}

Warnings ScoredDifferentlyRows(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow& row : facts.comparison.rows) {
    if (row.withheld != Withheld::kScoredDifferently) continue;
    parts.push_back(
        absl::StrCat(Quoted(row.label), " (", absl::StrJoin(row.scored_differently, ", "), ")"));
  }
  return Spoken(WarningKind::kScoredDifferently,
                absl::StrCat("not evaluated on the same ", ScoredText(facts.comparison.key),
                             " as the baseline, so without a verdict: "),
                parts);
}

// Returns "“post” 2 of 12 (seeds 3 and 7)": each row's cells that need a value and for which
// `holds` is true.
Parts CountedCells(const Facts& facts, bool (*holds)(const Cell& cell)) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    size_t count = 0;
    std::set<uint32_t> seeds;
    const GridRow& grid_row = facts.grid.rows[i];
    for (size_t place = 0; place < grid_row.cells.size(); ++place) {
      const Cell* cell = grid_row.cells[place];
      if (cell == nullptr || !holds(*cell)) continue;
      if (!NeedsValue(facts.input, grid_row, place, facts.selections[i].picks)) continue;
      ++count;
      seeds.insert(cell->seed);
    }
    if (count == 0) continue;
    Parts names;
    for (const uint32_t seed : seeds) names.push_back(absl::StrCat(seed));
    const ComparisonRow& row = facts.comparison.rows[i];
    parts.push_back(absl::StrCat(Quoted(row.label), " ", count, " of ", row.cells,
                                 seeds.size() == 1 ? " (seed " : " (seeds ", Enumerated(names),
                                 ")"));
  }
  return parts;
}

// Counts runs that have ended; others aren't a fault.
Warnings MissingCells(const Facts& facts) {
  return Spoken(WarningKind::kMissingCells,
                "cells without a result: ", CountedCells(facts, [](const Cell& cell) {
                  return cell.outcome == RunOutcome::kMissing ||
                         (cell.outcome == RunOutcome::kDone && !cell.value.has_value());
                }));
}

Warnings FailedCells(const Facts& facts) {
  return Spoken(WarningKind::kFailedCells,
                "cells whose run failed: ", CountedCells(facts, [](const Cell& cell) {
                  return cell.outcome == RunOutcome::kFailed;
                }));
}

Warnings SeveralExperiments(const Facts& facts) {
  if (facts.input.origins.empty()) return {};
  return {{WarningKind::kSeveralExperiments, facts.input.origins}};
}

// Names the damaged runs, because whoever repairs the disk must know where.
Warnings DamagedRuns(const Facts& facts) {
  Parts parts;
  for (const Cell& cell : facts.input.cells) {
    if (!cell.damage.empty()) parts.push_back(cell.damage);
  }
  return Spoken(WarningKind::kDamagedRuns,
                "runs without a result because stored data are damaged: ", parts);
}

// Returns "“post” 2": the number of each row's cells for which `holds` is true.
Parts CountedValues(const Facts& facts, bool (*holds)(const Cell& cell)) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    const auto& cells = facts.grid.rows[i].cells;
    const auto count = std::count_if(cells.begin(), cells.end(), [holds](const Cell* cell) {
      return cell != nullptr && holds(*cell);
    });
    if (count > 0)
      parts.push_back(absl::StrCat(Quoted(facts.comparison.rows[i].label), " ", count));
  }
  return parts;
}

Warnings NonFiniteValues(const Facts& facts) {
  return Spoken(WarningKind::kNonFiniteValues,
                absl::StrCat("runs that ended without a finite ", facts.comparison.Metric().text,
                             ", counted as diverged: "),
                CountedValues(facts, [](const Cell& cell) {
                  return cell.outcome == RunOutcome::kDone && cell.value.has_value() &&
                         !std::isfinite(*cell.value);
                }));
}

Warnings NotPositive(const Facts& facts) {
  if (facts.comparison.scale == facts.input.scale) return {};
  return Spoken(WarningKind::kNotPositive,
                absl::StrCat("compared as differences instead of ratios",
                             facts.input.margin.has_value() ? ", and without the margin," : "",
                             " because runs ended with a ", facts.comparison.Metric().text,
                             " of 0 or less: "),
                CountedValues(facts, IsNotPositive));
}

Warnings UnbalancedSeeds(const Facts& facts) {
  if (facts.comparison.unit != Unit::kSeed) return {};  // other warnings name missing runs
  Parts parts;
  for (const ComparisonRow& row : facts.comparison.rows) {
    // While runs go on, pairs may still be completed.
    if (!row.compared() || row.withheld == Withheld::kUnfinished) continue;
    const ComparisonRow& baseline = facts.comparison.rows[*row.baseline];
    const size_t alone = row.n - row.pairs.all;
    const size_t baseline_alone = baseline.n - row.pairs.all;
    if (alone > 0) parts.push_back(absl::StrCat(Quoted(row.label), " ", alone));
    if (baseline_alone > 0) {
      parts.push_back(absl::StrCat(Quoted(baseline.label), " ", baseline_alone, " (against ",
                                   Quoted(row.label), ")"));
    }
  }
  return Spoken(WarningKind::kUnbalancedSeeds,
                "unpaired seeds, left out of the paired comparison: ", parts);
}

Warnings TooFewSeeds(const Facts& facts) {
  const size_t family = facts.comparison.family;
  if (family == 0 || !facts.comparison.exploratory.empty()) return {};  // nothing is tested
  const size_t least = LeastSeedsForSignFlip(family);
  Parts parts;
  for (const ComparisonRow& row : facts.comparison.rows) {
    if (!row.in_family() || row.tested_pairs() >= least) continue;
    if (row.withheld == Withheld::kUnfinished) continue;  // more pairs will follow
    const ComparisonRow& baseline = facts.comparison.rows[*row.baseline];
    if (DivergedBySequence(facts.comparison.unit, row, baseline)) continue;
    parts.push_back(absl::StrCat(Quoted(row.label), " ", row.tested_pairs()));
  }
  return Spoken(
      WarningKind::kTooFewSeeds,
      absl::StrCat("too few pairs for p < 0.05 in the permutation test (",
                   Together({FamilyText(family), absl::StrCat(least, " are needed")}, "; "), "): "),
      parts);
}

Warnings NotBySequence(const Facts& facts) {
  if (facts.input.not_by_sequence.empty()) return {};
  return {{WarningKind::kNotBySequence,
           absl::StrCat("compared by seed, not by sequence: ", facts.input.not_by_sequence)}};
}

Warnings NoBaseline(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow& row : facts.comparison.rows) {
    if (!row.baseline.has_value()) parts.push_back(Quoted(row.label));
  }
  return Spoken(WarningKind::kNoBaseline, "the grid has no baseline for ", parts);
}

std::string RangeText(const ParameterRange& range) {
  return range.low == range.high
             ? text::Grouped(range.low)
             : absl::StrCat(text::Grouped(range.low), " to ", text::Grouped(range.high));
}

Warnings UnequalParameters(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow& row : facts.comparison.rows) {
    if (!row.compared() || !row.parameters.has_value()) continue;
    const auto& baseline = facts.comparison.rows[*row.baseline].parameters;
    if (!baseline.has_value()) continue;
    if (row.parameters->low == baseline->low && row.parameters->high == baseline->high) continue;
    parts.push_back(absl::StrCat(Quoted(row.label), " ", RangeText(*row.parameters), " against ",
                                 RangeText(*baseline)));
  }
  return Spoken(WarningKind::kUnequalParameters, "unequal numbers of parameters: ", parts);
}

// Returns true if a field only determines what is recorded or kept of a run.
bool OnlyLooks(const std::string& path) {
  constexpr absl::string_view kFields[] = {"evaluation.every", "evaluation.record",
                                           "training.checkpoints"};
  return std::find(std::begin(kFields), std::end(kFields), path) != std::end(kFields);
}

Warnings SeveralChanges(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow& row : facts.comparison.rows) {
    if (!row.compared()) continue;
    Parts written;
    for (const std::string& path : row.changed) {
      if (row.follows.count(path) == 0 && !OnlyLooks(path)) written.push_back(path);
    }
    if (written.size() < 2) continue;
    parts.push_back(absl::StrCat(Quoted(row.label), " (", absl::StrJoin(written, ", "), ")"));
  }
  return Spoken(WarningKind::kSeveralChanges,
                "more than one thing differs from the baseline: ", parts);
}

Warnings MixedProvenance(const Facts& facts) {
  const struct {
    absl::string_view name;
    std::string Cell::*field;
  } kinds[] = {{"trainers", &Cell::trainer},
               {"versions", &Cell::version},
               {"devices", &Cell::device},
               {"environments", &Cell::environment}};
  Parts parts;
  for (const auto& kind : kinds) {
    std::map<std::string, size_t> counts;
    for (const Cell& cell : facts.input.cells) {
      const std::string& name = cell.*kind.field;
      if (TrialOf(&cell).state != Trial::State::kNone && !name.empty()) ++counts[name];
    }
    if (counts.size() < 2) continue;
    Parts named;
    for (const auto& [name, count] : counts) named.push_back(absl::StrCat(count, " × ", name));
    parts.push_back(absl::StrCat(kind.name, " (", absl::StrJoin(named, "; "), ")"));
  }
  return Spoken(WarningKind::kMixedProvenance, "the runs used different ", parts);
}

// A lane loses a few per cent to the server on the same machine. More means that others use the
// machine.
constexpr double kUsualContention = .1;

Warnings ContendedThroughput(const Facts& facts) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    size_t count = 0;
    double contended = 0, all = 0;
    for (const Cell* cell : facts.grid.rows[i].cells) {
      if (cell == nullptr || !cell->device_seconds.has_value()) continue;
      if (cell->contended_seconds <= kUsualContention * *cell->device_seconds) continue;
      ++count;
      contended += cell->contended_seconds;
      all += *cell->device_seconds;
    }
    if (count == 0) continue;
    parts.push_back(absl::StrCat(Quoted(facts.comparison.rows[i].label), " ", count, " of ",
                                 Counted(facts.comparison.rows[i].cells, "run"), " (",
                                 std::lround(100 * contended / all), " % of their time)"));
  }
  return Spoken(
      WarningKind::kContendedThroughput,
      "device-seconds and tokens/s are unreliable because runs waited for a core: ", parts);
}

std::string EdgeText(const Axis& axis, double value, absl::string_view which, size_t seeds,
                     const ComparisonRow& row) {
  const auto at = std::find(axis.values.begin(), axis.values.end(), value) - axis.values.begin();
  return absl::StrCat("selected ", axis.name, " at the edge of its grid: ", Quoted(row.label),
                      " selected the ", which, " (", axis.labels[static_cast<size_t>(at)], ") on ",
                      seeds, " of ", Counted(row.n, "seed"));
}

Warnings GridEdges(const Facts& facts) {
  Warnings warnings;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    const GridRow& grid_row = facts.grid.rows[i];
    const ComparisonRow& row = facts.comparison.rows[i];
    for (size_t tuned = 0; tuned < facts.grid.tuned_axes.size(); ++tuned) {
      const Axis& axis = facts.input.axes[facts.grid.tuned_axes[tuned]];
      if (axis.values.empty()) continue;
      std::vector<double> values;
      for (const auto& candidate : grid_row.candidates)
        values.push_back(axis.values[candidate[tuned]]);
      const std::optional<EdgePicks> edges = CountEdgePicks(values, facts.selections[i]);
      if (!edges.has_value()) continue;
      const auto warn = [&](double value, absl::string_view which, size_t seeds) {
        if (seeds == 0) return;
        warnings.push_back({WarningKind::kGridEdge, EdgeText(axis, value, which, seeds, row)});
      };
      warn(edges->lowest, "lowest", edges->at_lowest);
      warn(edges->highest, "highest", edges->at_highest);
    }
  }
  return warnings;
}

// Returns "0.003, 0.01 and 0.03": the values that a row could select from.
std::string CandidatesText(const Facts& facts, const GridRow& row) {
  Parts values;
  for (const auto& candidate : row.candidates) {
    values.push_back(absl::StrJoin(LabelsAt(facts.input, facts.grid.tuned_axes, candidate), ", "));
  }
  return Enumerated(values);
}

Warnings OtherCandidates(const Facts& facts) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    const ComparisonRow& row = facts.comparison.rows[i];
    if (!row.compared() || facts.grid.tuned_axes.empty()) continue;
    const GridRow &own = facts.grid.rows[i], &baseline = facts.grid.rows[*row.baseline];
    if (own.candidates == baseline.candidates) continue;
    parts.push_back(absl::StrCat(Quoted(row.label), " (", CandidatesText(facts, own), " against ",
                                 CandidatesText(facts, baseline), ")"));
  }
  return Spoken(
      WarningKind::kOtherCandidates,
      absl::StrCat(
          absl::StrJoin(facts.comparison.tuned_axes, " and "),
          " tried at other values than the baseline's, so the permutation test is approximate: "),
      parts);
}

Warnings TunedOnSameSeed(const Facts& facts) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    if (facts.selections[i].same_seed > 0) parts.push_back(Quoted(facts.comparison.rows[i].label));
  }
  return Spoken(WarningKind::kTunedOnSameSeed,
                absl::StrCat(absl::StrJoin(facts.comparison.tuned_axes, " and "),
                             " selected on the compared run itself, because no other seed has a "
                             "result: "),
                parts);
}

// A run that starts with confident errors spends its first steps on correcting them: a difference
// at the end may be a remainder of that.
Warnings HighStarts(const Facts& facts) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    std::map<uint32_t, double> high;  // by seed
    std::set<uint32_t> seeds;
    double uniform = 0;
    for (const Cell* cell : facts.grid.rows[i].cells) {
      if (cell == nullptr) continue;
      seeds.insert(cell->seed);
      if (!cell->high_start.has_value()) continue;
      high[cell->seed] = *cell->high_start;
      uniform = cell->uniform;
    }
    if (high.empty()) continue;
    double sum = 0;
    for (const auto& [seed, start] : high) sum += start;
    parts.push_back(absl::StrCat(
        Quoted(facts.comparison.rows[i].label), " ",
        Plain(sum / static_cast<double>(high.size()), 1), " against ", Plain(uniform, 1),
        high.size() == seeds.size()
            ? ""
            : absl::StrCat(" on ", high.size(), " of ", Counted(seeds.size(), "seed"))));
  }
  return Spoken(WarningKind::kHighStart,
                "the loss before the first step is far above that of a uniform guess, so a "
                "difference may be due to the initial values (model.init.kind, model.tied_head): ",
                parts);
}

// Returns for each seed of a row the first experiment that had one of its runs, at any tuned value.
std::map<uint32_t, int64_t> FirstExperiments(const GridRow& row) {
  std::map<uint32_t, int64_t> first;
  for (const Cell* cell : row.cells) {
    if (cell == nullptr) continue;
    const auto [found, is_new] = first.try_emplace(cell->seed, cell->first_experiment);
    if (!is_new) found->second = std::min(found->second, cell->first_experiment);
  }
  return first;
}

// A pair exists since the later of its two experiments. If pairs differ in that, seeds were added
// when others could have been looked at.
Warnings SeedsAdded(const Facts& facts) {
  Parts parts;
  for (size_t i = 0; i < facts.comparison.rows.size(); ++i) {
    const ComparisonRow& row = facts.comparison.rows[i];
    if (!row.in_family()) continue;
    const auto own = FirstExperiments(facts.grid.rows[i]);
    const auto baseline = FirstExperiments(facts.grid.rows[*row.baseline]);
    std::vector<int64_t> pairs;
    for (const auto& [seed, first] : own) {
      const auto partner = baseline.find(seed);
      if (partner != baseline.end()) pairs.push_back(std::max(first, partner->second));
    }
    if (pairs.empty()) continue;
    const int64_t first = *std::min_element(pairs.begin(), pairs.end());
    const auto added = std::ssize(pairs) - std::count(pairs.begin(), pairs.end(), first);
    if (added == 0) continue;
    parts.push_back(absl::StrCat(Quoted(row.label), " ", added, " of ", pairs.size()));
  }
  return Spoken(WarningKind::kSeedsAdded,
                "some pairs were submitted later than others; if seeds were added because of "
                "results, the false-positive rate is above 5 % (7 % with two looks, 13 % with "
                "five): ",
                parts);
}

// Returns the rows that are judged by their differences.
std::vector<const ComparisonRow*> JudgedRows(const Facts& facts) {
  std::vector<const ComparisonRow*> judged;
  for (const ComparisonRow& row : facts.comparison.rows) {
    if (row.compared() && row.withheld == Withheld::kNo && !row.by_wins) judged.push_back(&row);
  }
  return judged;
}

// Normal differences reach the skewness in 5 % of samples of 5 to 8 pairs. Of more than 16 pairs
// the mean is closer to normal.
constexpr double kSkewness = 1.2, kSkewnessByRoot = 0.3;

Warnings SkewedDifferences(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow* row : JudgedRows(facts)) {
    const Number& skewness = row->difference.skewness;
    const double least =
        std::max(kSkewness, kSkewnessByRoot * std::sqrt(static_cast<double>(row->difference.n)));
    if (!skewness.defined() || std::abs(skewness.value) < least) continue;
    parts.push_back(absl::StrCat(Quoted(row->label), " ", Signed(skewness.value, 1)));
  }
  return Spoken(WarningKind::kSkewedDifferences,
                "the differences look skewed; if they are, settings with equal means get a verdict "
                "in up to 18 % of experiments instead of 5 %; skewness: ",
                parts);
}

Warnings UnequalNoise(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow* row : JudgedRows(facts)) {
    if (!HasDoubtfulNoise(facts.comparison, *row)) continue;
    parts.push_back(NoisierText(*row, facts.comparison.rows[*row->baseline]));
  }
  return Spoken(WarningKind::kUnequalNoise,
                "unequal noise and selections that differ between seeds; equal settings are then "
                "told apart in up to 11 % of experiments instead of 5 %, so these rows are "
                "probable at best: ",
                parts);
}

// With more pairs that differ, their mean is closer to normal.
constexpr size_t kPairsForNormal = 10;

// Returns the value at which all equal pairs are, if they are half of the pairs or more and no run
// of the row or its baseline has a better one: the metric's ceiling, or its floor.
std::optional<double> CeilingOf(const Comparison& comparison, const ComparisonRow& row) {
  const ComparisonRow& baseline = comparison.rows[*row.baseline];
  const size_t equal = row.pairs.equal();
  const bool many = equal > 0 && 2 * equal >= row.pairs.converged;
  if (!many || comparison.better == Better::kNeither || comparison.unit != Unit::kSeed) {
    return std::nullopt;
  }
  const double sign = comparison.better == Better::kLower ? -1 : 1;
  double best = -std::numeric_limits<double>::infinity();
  std::map<uint32_t, size_t> at_best;  // number of runs by seed
  for (const ComparisonRow* of : {&row, &baseline}) {
    for (const SeedRun& run : of->runs) {
      if (run.diverged || sign * run.value < best) continue;
      if (sign * run.value > best) at_best.clear();
      best = sign * run.value;
      ++at_best[run.seed];
    }
  }
  const auto both = std::count_if(at_best.begin(), at_best.end(),
                                  [](const auto& seed) { return seed.second == 2; });
  if (static_cast<size_t>(both) != equal) return std::nullopt;
  return sign * best;
}

Warnings ManyTies(const Facts& facts) {
  Parts parts;
  for (const ComparisonRow* row : JudgedRows(facts)) {
    const size_t equal = row->pairs.equal(), all = row->pairs.converged;
    const std::optional<double> ceiling = CeilingOf(facts.comparison, *row);
    const bool many = equal < all && 2 * equal >= all && all - equal < kPairsForNormal;
    if (!many && !ceiling.has_value()) continue;
    parts.push_back(absl::StrCat(
        Quoted(row->label), " ", equal, " of ", all,
        ceiling.has_value()
            ? absl::StrCat(" at ", Plain(*ceiling), ", the best value of any run: a ceiling")
            : ""));
  }
  return Spoken(WarningKind::kManyTies,
                "many pairs are equal, as at the ceiling of a metric; intervals may then cover the "
                "true difference in 84 % of experiments instead of 95 %; equal pairs: ",
                parts);
}

struct Check {
  WarningKind kind;
  absl::string_view name;
  Warnings (*find)(const Facts& facts);
};

// In the order of the warnings.
constexpr Check kChecks[] = {
    {WarningKind::kScoredDifferently, "settings evaluated on different data",
     ScoredDifferentlyRows},
    {WarningKind::kMissingCells, "missing results", MissingCells},
    {WarningKind::kFailedCells, "failed runs", FailedCells},
    {WarningKind::kDamagedRuns, "damaged runs", DamagedRuns},
    {WarningKind::kSeveralExperiments, "several experiments", SeveralExperiments},
    {WarningKind::kNonFiniteValues, "values that are not finite", NonFiniteValues},
    {WarningKind::kNotPositive, "differences instead of ratios", NotPositive},
    {WarningKind::kUnbalancedSeeds, "unpaired seeds", UnbalancedSeeds},
    {WarningKind::kTooFewSeeds, "too few pairs", TooFewSeeds},
    {WarningKind::kNotBySequence, "not compared by sequence", NotBySequence},
    {WarningKind::kNoBaseline, "no baseline", NoBaseline},
    {WarningKind::kUnequalParameters, "unequal parameters", UnequalParameters},
    {WarningKind::kSeveralChanges, "several things changed", SeveralChanges},
    {WarningKind::kMixedProvenance, "mixed versions, trainers, devices or environments",
     MixedProvenance},
    {WarningKind::kContendedThroughput, "throughput measured on shared cores", ContendedThroughput},
    {WarningKind::kGridEdge, "a selected value at the edge of its grid", GridEdges},
    {WarningKind::kOtherCandidates, "tuned over other values than the baseline", OtherCandidates},
    {WarningKind::kTunedOnSameSeed, "a value selected on the compared run itself", TunedOnSameSeed},
    {WarningKind::kHighStart, "initial loss far above a uniform guess", HighStarts},
    {WarningKind::kSeedsAdded, "seeds added later", SeedsAdded},
    {WarningKind::kSkewedDifferences, "skewed differences", SkewedDifferences},
    {WarningKind::kUnequalNoise, "unequal noise with several selected values", UnequalNoise},
    {WarningKind::kManyTies, "many equal pairs", ManyTies},
};

}  // namespace

std::vector<Warning> FindWarnings(const ComparisonInput& input, const CellGrid& grid,
                                  const std::vector<Selection>& selections,
                                  const Comparison& comparison) {
  const Facts facts{input, grid, selections, comparison};
  std::vector<Warning> warnings;
  for (const Check& check : kChecks) {
    for (Warning& warning : check.find(facts)) warnings.push_back(std::move(warning));
  }
  return warnings;
}

absl::string_view WarningName(WarningKind kind) {
  for (const Check& check : kChecks) {
    if (check.kind == kind) return check.name;
  }
  return "";
}

}  // namespace ablate::report
