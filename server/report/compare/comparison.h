// Turns a trained grid into a table: compares each combination of settings with the baseline,
// paired by seed or by sequence.
#ifndef ABLATE_SERVER_REPORT_COMPARE_COMPARISON_H_
#define ABLATE_SERVER_REPORT_COMPARE_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/compare/factorial.h"
#include "server/report/compare/looks.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/paired.h"
#include "server/report/compare/power.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/selection.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/warnings.h"

namespace ablate::report {

struct Axis {
  std::string name;
  std::vector<std::string> labels;  // distinct, in the spec's order
  bool tuned =
      false;  // a tuned hyperparameter: selected per setting by leave-one-seed-out selection
  std::vector<double> values;  // of a numeric axis, one per label; otherwise empty
  // The label of the base spec itself, if it is among them: the value of a comparison without
  // tuning.
  std::optional<std::string> base;
};

enum class RunOutcome {
  kMissing,     // ended without a result: cancelled, unreadable, or without the metric
  kUnfinished,  // queued or training
  kDone,
  kDiverged,
  kFailed,
};

// The unit of pairs: runs of equal seed, or results of two models on one sequence that both read,
// on one item of results that were imported, or on a group of those. kItem and kGroup are as
// kSequence in all that follows.
enum class Unit { kSeed, kSequence, kItem, kGroup };

// One cell of the grid and its run's result.
struct Cell {
  std::vector<std::string> labels;  // one per axis, in the axes' order
  uint32_t seed = 0;
  // Number of the first experiment with the run or a shorter one of it; orders them by time.
  int64_t first_experiment = 0;
  RunOutcome outcome = RunOutcome::kMissing;
  // The metric, read if kDone; without it the cell counts as missing, a non-finite one as diverged.
  std::optional<double> value;
  // If the unit is kSequence: the part of each sequence in `value`, which is their mean; its share
  // of the targets times the number of sequences (empty: 1 each); and what was read. Cells with
  // equal texts read the same sequences in the same order.
  std::vector<double> by_sequence;
  std::vector<double> sequence_weights;
  std::string sequences;
  // The value of ComparisonInput::choice_key, if that is another metric.
  std::optional<double> choice;
  // Evaluation loss before the first step, set only if it is far above `uniform`, the loss of a
  // uniform guess (ln of the vocabulary's size); in nats.
  std::optional<double> high_start;
  double uniform = 0;
  std::optional<int64_t> parameters;
  std::optional<double> device_seconds;
  double contended_seconds = 0;  // part of device_seconds during which other work had the core
  std::optional<double> tokens_per_second;
  std::string trainer, version, device, environment;  // "" if not recorded
  // Dotted paths at which the resolved spec differs from the experiment's base, and the value
  // there.
  std::map<std::string, std::string> changed;
  // Paths of `changed` that the settings do not write: their default follows from another field.
  std::set<std::string> follows;
  // Why the stored data of a DONE run can't be read; its outcome is then kMissing.
  std::string damage;
  // The evaluation data of its metrics, by dotted path. Cells that differ in it can't be compared.
  std::map<std::string, std::string> scored;
};

struct ComparisonInput {
  std::string key;  // of the metric, such as "eval/loss"
  MetricSource source = MetricSource::kTrainer;
  Better better = Better::kLower;
  // The step at which the metric is read; default: the end of each run.
  std::optional<uint32_t> at{};
  // kSequence needs differences, no tuned axis, one cell per combination, and finite `by_sequence`,
  // at least two, of each cell with a value. Cells with equal `sequences` have equally many.
  Unit unit = Unit::kSeed;
  // Why pairs are of seeds although an analysis has the results of sequences, without a full stop;
  // otherwise "".
  std::string not_by_sequence;
  // How values are compared. Ratios need values above 0: if a converged run has another value,
  // differences are compared instead, without a margin, with a warning.
  Scale scale = Scale::kDifference;
  // The metric by which tuned values are selected, if it isn't `key`: the cells have its values as
  // `choice`, and those that aren't selected need no value. Empty: selection by `key`.
  std::string choice_key;
  Better choice_better = Better::kLower;
  // Why this comparison was not planned, as a phrase for brackets: "report.primary is eval/loss".
  // Its rows are described and not tested. Empty: it was planned.
  std::string exploratory;
  // A note about cells that come from several experiments, without a full stop; otherwise "".
  std::string origins;
  // Equivalence margin, above 0: differences within ±margin, or ratios within a factor of 1 +
  // margin, don't matter. None: nothing is equivalent.
  std::optional<double> margin;
  std::vector<Axis> axes;
  std::vector<Cell> cells;  // in any order; each combination and seed at most once
  // Label of the baseline by axis name; axes not named: their first label.
  std::map<std::string, std::string> baseline;
  // Compare along this axis, within each combination of the other axes that aren't tuned (this axis
  // is then not tuned either). "" compares all combinations with one baseline; but if an axis
  // changes the evaluation data, within each of its settings, unless no other axis is left to
  // compare along or `baseline` names the axis.
  std::string by;
};

// A combination of tuned values, and the number of seeds for which it was selected.
struct Choice {
  std::vector<std::string> labels;  // one per tuned axis
  size_t seeds = 0;
};

struct SeedRun {
  uint32_t seed = 0;
  double value = 0;  // NaN if diverged
  bool diverged = false;
  std::vector<std::string> chosen;  // tuned labels, one per tuned axis
  // As in Cell, but the parts of longer sequences are reduced to the same length: `value` plus the
  // sequence's residual of the ratio (Cochran 1977, §6.4).
  std::vector<double> by_sequence;
};

struct ParameterRange {
  int64_t low = 0, high = 0;
};

// Pairs of a row with its baseline, over the seeds on which both have a result. A run that diverged
// loses its pair; two tie. Pairs of sequences exist only if both runs converged.
struct Pairs {
  size_t all = 0;                         // both have a result
  size_t converged = 0;                   // and both converged
  size_t wins = 0, losses = 0, ties = 0;  // of the row, over all pairs
  size_t only_row_diverged = 0, only_baseline_diverged = 0;

  // Returns the number of converged pairs of equal values.
  size_t equal() const {
    return ties - (all - converged - only_row_diverged - only_baseline_diverged);
  }
};

// Why a compared row gets no verdict.
enum class Withheld {
  kNo,
  kUnfinished,         // a run of the row or of its baseline, tuned ones included, has not ended
  kScoredDifferently,  // their runs don't have the same evaluation data
  kExploratory,        // the comparison isn't the planned one
  kTooFewPairs,        // fewer than kLeastPairs
};

inline constexpr size_t kLeastPairs = 3;  // needed for a verdict

struct ComparisonRow {
  std::vector<std::string> labels;  // one per row axis
  std::vector<double> numbers;      // the labels' values; NaN if the axis isn't numeric
  std::string label;                // the labels as one text, by SettingName
  std::optional<size_t> baseline;   // index of the row it is compared with; a baseline has its own
  bool is_baseline = false;

  std::vector<SeedRun> runs;  // with a result, ascending seeds
  // Selected runs that ended well but have no value, with NaN for it, ascending seeds; their other
  // results can be shown.
  std::vector<SeedRun> without_value;
  size_t n = 0;           // runs with a result
  size_t diverged = 0;    // number of those that diverged
  size_t cells = 0;       // number in the grid, including those not selected
  size_t missing = 0;     // cells without a result, likewise
  size_t failed = 0;      // cells whose run failed, likewise
  size_t unfinished = 0;  // of the missing: cells whose run has not ended
  Withheld withheld = Withheld::kNo;
  // Dotted paths at which what is scored differs between the runs of this row and its baseline.
  std::vector<std::string> scored_differently;

  // Over its own converged runs, or over their sequences, in the metric's unit. For ratios, means
  // are geometric, and `own.deviation` is that of natural logarithms.
  Summary own;
  // Over the pairs in which both converged; `own`'s for a baseline or without such a pair.
  Number mean;
  Interval interval;  // of that mean
  Pairs pairs;
  // Row minus baseline over the pairs in which both converged; for ratios, of natural logarithms.
  PairedStatistics difference;
  // The row's standard deviation over these pairs, on the scale, divided by the baseline's; 0 if
  // only the row has no spread. kZeroVariance if the baseline has none.
  Number noise_ratio;
  // p of the row's test: of the difference, or of the wins if in some pair only one of the two
  // diverged and the metric has a better direction. Undefined: difference.p_sign_flip's reasons.
  Number p;
  // p of the same test of the selected runs alone, without reselection. kNotRecorded if `p` isn't
  // by reselection.
  Number p_selected = {std::numeric_limits<double>::quiet_NaN(), Undefined::kNotRecorded};
  bool exact = false;  // p counts all patterns of signs
  bool by_wins = false;
  Number p_holm;  // Holm-adjusted p over all rows that can be tested
  // The same for difference.p_t. A row by_wins counts in the family and has none (kTestedByWins).
  Number p_t_holm;
  // Equivalence test: the larger p of the two one-sided tests (Schuirmann 1987) that the difference
  // is within the margin, adjusted over the family. kNotRecorded without a margin; kTestedByWins
  // for a row by_wins.
  Number p_equivalence = {std::numeric_limits<double>::quiet_NaN(), Undefined::kNotRecorded};
  // Looks at the pairs in order of seeds. None without pairs, for sequences and items, and if tuned
  // values are selected by another metric or of ratios.
  std::optional<Looks> looks;
  // For the main rows: the seeds that the difference needs, and the smallest one that these pairs
  // detect with kPower, in the unit of `difference`.
  SeedsNeeded needed;
  Number least_detectable;

  std::vector<Choice> chosen;  // of the tuned axes, in the grid's order, seeds > 0
  std::optional<ParameterRange> parameters;
  Number device_seconds;          // mean of the runs in this row
  double device_seconds_all = 0;  // sum over all its cells, including those not selected
  Number tokens_per_second;       // mean of the runs in this row
  // Dotted paths whose values differ from the baseline's, without tuned axes.
  std::vector<std::string> changed;
  // Those of `changed` that no setting writes: they follow from another field by default.
  std::set<std::string> follows;

  bool compared() const { return baseline.has_value() && !is_baseline; }
  // Returns the number of pairs in the test of `p`.
  size_t tested_pairs() const { return by_wins ? pairs.all : difference.n; }
  // Returns true if it has a verdict, or will have one when its runs have ended.
  bool in_family() const { return compared() && withheld != Withheld::kScoredDifferently; }
};

// The comparison at one shared combination of tuned values.
struct MatchedBlock {
  std::vector<std::string> labels;  // one per tuned axis
  // Rows with cells there; `baseline` indexes this list. No bootstrap; p_holm is over all blocks
  // together.
  std::vector<ComparisonRow> rows;
};

struct Comparison {
  std::string key;
  MetricSource source = MetricSource::kTrainer;
  Better better = Better::kLower;
  std::optional<uint32_t> at;           // as in ComparisonInput
  Unit unit = Unit::kSeed;              // likewise; of pairs, and of each row's `own`
  Scale scale = Scale::kDifference;     // on which its rows are compared
  std::string choice_key, exploratory;  // as in ComparisonInput
  std::optional<double> margin;         // likewise; none if ratios were requested but impossible
  std::vector<std::string> row_axes, tuned_axes;
  std::vector<std::vector<std::string>> tuned_labels;  // by tuned axis, in the spec's order
  // Row axes whose settings have different evaluation data, so that rows are compared within each
  // of them only.
  std::vector<std::string> within_axes;
  // True if every row tried at least three numbers of each tuned axis, so that a selection at the
  // edge would be noticed.
  bool edges_known = false;
  size_t planned = 0, ended = 0;      // cells, and those whose run has ended
  std::vector<ComparisonRow> rows;    // combinations in the axes' order, the first axis slowest
  size_t family = 0;                  // rows that can be tested: Holm's family
  std::vector<MatchedBlock> matched;  // empty if nothing is tuned
  // Index in `matched`: the block at the base spec's own values, otherwise at the baseline's most
  // frequent selection; none if rows can't be compared there.
  std::optional<size_t> reference;
  Factorial factorial;  // effects of crossed axes
  std::vector<Warning> warnings;

  // Return the names of the metrics with `key` and `choice_key`.
  MetricName Metric() const { return NameOfMetric(key, source); }
  MetricName ChoiceMetric() const { return NameOfMetric(choice_key, source); }
};

// Returns true if the permutation test repeats the selection for some row.
bool IsReselected(const Comparison& comparison);

// Returns the index in `rows` of the baseline of all compared rows; nothing if they have several,
// or nothing is compared.
std::optional<size_t> SharedBaseline(const Comparison& comparison);

struct CompareOptions {
  std::function<bool()> cancelled;  // called for each row; may be empty
  size_t resamples = 10000;         // of the bootstrap; 0: none, `bca` is then undefined
  // false: only rows, and their differences with Student's interval and p; no permutation test, no
  // family, and nothing at shared tuned values, of crossed axes, or to warn of.
  bool tests = true;
};

// Compares a grid. Errors: CANCELLED, and INVALID_ARGUMENT naming the field: axes or labels that
// repeat or are empty, values that do not fit the labels, cells that repeat or name unknown labels,
// an unknown baseline or `by`, cells that can't be compared by the unit. The order of cells doesn't
// matter. With tuned axes the pairs share data through leave-one-seed-out selection, so that t and
// sign-flip tests are approximations. Pure, safe from any thread.
absl::StatusOr<Comparison> Compare(const ComparisonInput& input,
                                   const CompareOptions& options = {});

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_COMPARISON_H_
