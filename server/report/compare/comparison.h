// A trained grid as a table: each combination of settings against the baseline, paired by seed.
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
  bool tuned = false;               // a nuisance: chosen per setting on its other seeds
  std::vector<double> values;       // of a numeric axis, one a label; else empty
  // The label that the base spec itself has, where it is among them: what a comparison without
  // tuning would use.
  std::optional<std::string> base;
};

enum class RunOutcome {
  kMissing,     // ended without a result: cancelled
  kUnfinished,  // queued or training
  kDone,
  kDiverged,
  kFailed,
};

// One cell of the grid and what its run gave.
struct Cell {
  std::vector<std::string> labels;  // one an axis, in the axes' order
  uint32_t seed = 0;
  RunOutcome outcome = RunOutcome::kMissing;
  // The metric, read where kDone; without it the cell counts as missing, a non-finite one as
  // diverged.
  std::optional<double> value;
  // Likewise ComparisonInput::choice_key, where that is another metric.
  std::optional<double> choice;
  // Evaluation loss before the first step, set only if it is far above `uniform`, the loss of a
  // uniform guess (ln of the vocabulary's size); in nats.
  std::optional<double> high_start;
  double uniform = 0;
  std::optional<int64_t> parameters;
  std::optional<double> device_seconds;
  double contended_seconds = 0;  // of device_seconds, while other work had the core
  std::optional<double> tokens_per_second;
  std::string trainer, version, device, environment;  // "" where not recorded
  // Dotted paths at which the resolved spec differs from the experiment's base, and the value
  // there.
  std::map<std::string, std::string> changed;
  // Paths of `changed` that the settings do not write: their default follows from another field.
  std::set<std::string> follows;
  // Why what is stored of a run that is done can't be read; then it is kMissing.
  std::string damage;
  // What its metrics are computed on, by dotted path. Cells that differ in it can't be judged
  // against each other.
  std::map<std::string, std::string> scored;
};

struct ComparisonInput {
  std::string key;  // of the metric, e.g. "eval/loss"
  Better better = Better::kLower;
  // The step at which the metric is read; without it where each run ended.
  std::optional<uint32_t> at{};
  // How values are compared. Ratios need values above 0: if a converged run has another one,
  // differences are compared all the same, without a margin, and a warning says so.
  Scale scale = Scale::kDifference;
  // The metric by which tuned values are chosen, where it is not `key`: the cells have its values
  // as `choice`, and those that are not chosen need no value. Empty: they are chosen by `key`.
  std::string choice_key;
  Better choice_better = Better::kLower;
  // Why this comparison was not planned, as what a sentence puts in brackets: "report.primary is
  // eval/loss". Its rows are described and not judged. Empty: it was.
  std::string exploratory;
  // Of cells that come from several experiments what to know of that, without a full stop; else "".
  std::string origins;
  // Differences within it either way do not matter, or ratios within a factor of 1 + margin; above
  // 0. None: nothing is equivalent.
  std::optional<double> margin;
  std::vector<Axis> axes;
  std::vector<Cell> cells;  // in any order; each combination and seed at most once
  // Label of the baseline by axis name; axes not named: their first label.
  std::map<std::string, std::string> baseline;
  // Compare along this axis, within each combination of the other axes that are not tuned (this
  // axis is then not tuned); "" compares all combinations with one baseline, but within each
  // setting of an axis that changes what is scored, unless no other axis is left to compare along
  // or `baseline` names the axis.
  std::string by;
};

// A combination of tuned values and on how many seeds it was chosen.
struct Choice {
  std::vector<std::string> labels;  // one a tuned axis
  size_t seeds = 0;
};

struct SeedRun {
  uint32_t seed = 0;
  double value = 0;  // NaN where diverged
  bool diverged = false;
  std::vector<std::string> chosen;  // tuned labels, one a tuned axis
};

struct ParameterRange {
  int64_t low = 0, high = 0;
};

// Pairs of a row with its baseline, over the seeds on which both have a result. A diverged run
// loses.
struct Pairs {
  size_t all = 0;                         // both have a result
  size_t converged = 0;                   // and both converged
  size_t wins = 0, losses = 0, ties = 0;  // of the row, over all
  size_t only_row_diverged = 0, only_baseline_diverged = 0;
};

// Why a row that is compared gets no verdict.
enum class Withheld {
  kNo,
  kUnfinished,         // a run of the row or of its baseline, tuned ones included, has not ended
  kScoredDifferently,  // their runs are not all scored on the same data, however they end
  kExploratory,        // the comparison is not the one that was planned
  kTooFewPairs,        // fewer than kLeastPairs
};

inline constexpr size_t kLeastPairs = 3;  // for a verdict

struct ComparisonRow {
  std::vector<std::string> labels;  // one a row axis
  std::vector<double> numbers;      // the labels' values; NaN of an axis that is not numeric
  std::string label;                // the same as one text, by SettingName
  std::string mark;                 // the same where there is little room: pre/true/16
  std::optional<size_t> baseline;   // index of the row it is compared with; its own for a baseline
  bool is_baseline = false;

  std::vector<SeedRun> runs;  // with a result, ascending seeds
  // Chosen ones that ended well but have no value, with NaN for it, ascending seeds: what else they
  // gave can be shown.
  std::vector<SeedRun> without_value;
  size_t n = 0;           // runs with a result
  size_t diverged = 0;    // of them
  size_t cells = 0;       // of the grid, tuned ones not chosen included
  size_t missing = 0;     // cells without a result, likewise
  size_t failed = 0;      // cells whose run failed, likewise
  size_t unfinished = 0;  // of the missing: cells whose run has not ended
  Withheld withheld = Withheld::kNo;
  // Dotted paths at which what is scored differs between the runs of this row and its baseline.
  std::vector<std::string> scored_differently;

  // Over its own converged runs, in the metric's unit. Where ratios are compared means are
  // geometric, and `own.deviation` is that of natural logarithms.
  Summary own;
  // Over the pairs where both converged; own without such a pair, and of a baseline.
  Number mean;
  Interval interval;  // of that mean
  Pairs pairs;
  // Row minus baseline over the pairs where both converged; where ratios are compared, of natural
  // logarithms.
  PairedStatistics difference;
  // Of the test that judges the row: of the difference, or of the wins where on some pair only one
  // of the two diverged. Undefined: difference.p_sign_flip's reasons.
  Number p;
  bool exact = false;  // p counts all patterns of signs
  bool by_wins = false;
  Number p_holm;    // of p, over all rows that can be judged
  Number p_t_holm;  // of difference.p_t likewise; a row by_wins counts in the family and has none
  // That the difference is beyond the margin on one side or the other: the larger p of the two
  // one-sided tests (Schuirmann 1987), over the family. kNotRecorded without a margin.
  Number p_equivalence = {std::numeric_limits<double>::quiet_NaN(), Undefined::kNotRecorded};
  // Of the main rows: what the difference would take, and the least that the pairs are likely to
  // find (kPower), in the unit of `difference`.
  SeedsNeeded needed;
  Number least_detectable;

  std::vector<Choice> chosen;  // of the tuned axes, in the grid's order, seeds > 0
  std::optional<ParameterRange> parameters;
  Number device_seconds;          // mean of the runs in this row
  double device_seconds_all = 0;  // sum over all its cells, tuned ones not chosen included
  Number tokens_per_second;       // mean of the runs in this row
  // Dotted paths whose values differ from the baseline's, tuned axes aside.
  std::vector<std::string> changed;
  // Those of `changed` that no setting writes, for they follow from another by default.
  std::set<std::string> follows;

  bool compared() const { return baseline.has_value() && !is_baseline; }
  // Pairs that the test of `p` is of.
  size_t tested_pairs() const { return by_wins ? pairs.all : difference.n; }
  // Whether it has a verdict, or will have one when its runs have ended.
  bool in_family() const { return compared() && withheld != Withheld::kScoredDifferently; }
};

// The comparison at one shared combination of tuned values.
struct MatchedBlock {
  std::vector<std::string> labels;  // one a tuned axis
  // Rows that have cells there; `baseline` indexes this list. No bootstrap; p_holm is over all
  // blocks together.
  std::vector<ComparisonRow> rows;
};

struct Comparison {
  std::string key;
  Better better = Better::kLower;
  std::optional<uint32_t> at;           // as ComparisonInput's
  Scale scale = Scale::kDifference;     // that its rows are compared on
  std::string choice_key, exploratory;  // as ComparisonInput's
  std::optional<double> margin;         // likewise; none where ratios were to be compared in vain
  std::vector<std::string> row_axes, tuned_axes;
  // Row axes whose settings are scored on different data, so that rows are compared within each of
  // them only.
  std::vector<std::string> within_axes;
  // Whether every tuned axis is numeric with three values or more, so that a choice at its edge
  // would have been seen.
  bool edges_known = false;
  size_t planned = 0, ended = 0;      // cells, and of them those whose run has ended
  std::vector<ComparisonRow> rows;    // combinations in the axes' order, the first axis slowest
  size_t family = 0;                  // rows that can be judged: Holm's family
  std::vector<MatchedBlock> matched;  // empty where nothing is tuned
  // Of `matched`: the block at the base spec's own values, else at the baseline's usual choice.
  std::optional<size_t> reference;
  Factorial factorial;  // of crossed axes
  std::vector<Warning> warnings;
};

// Whether tuned values are chosen again under every pattern of signs, for some row.
bool IsRechosen(const Comparison& comparison);

// The baseline of all rows that are compared: an index of `rows`; none where they have several, or
// nothing is compared.
std::optional<size_t> SharedBaseline(const Comparison& comparison);

struct CompareOptions {
  std::function<bool()> cancelled;  // asked a row at a time; may be empty
  size_t resamples = 10000;         // of the bootstrap; 0: none, `bca` is then undefined
};

// Errors: CANCELLED, and INVALID_ARGUMENT naming the field: axes or labels that repeat or are
// empty, values that do not fit the labels, cells that repeat or name unknown labels, an unknown
// baseline or `by`. Order of cells does not matter. A choice on other seeds makes the pairs share
// data, so with tuned axes t and sign flips are approximations. Pure, safe from any thread.
absl::StatusOr<Comparison> Compare(const ComparisonInput& input,
                                   const CompareOptions& options = {});

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_COMPARISON_H_
