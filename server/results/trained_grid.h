// Loads a stored experiment for the statistics: its grid, each run's value, and its curves.
#ifndef ABLATE_SERVER_RESULTS_TRAINED_GRID_H_
#define ABLATE_SERVER_RESULTS_TRAINED_GRID_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/analysis/metrics.h"
#include "server/experiment/field_values.h"
#include "server/lookup/cancelled.h"
#include "server/report/compare/comparison.h"
#include "server/results/series.h"
#include "storage/store.h"

namespace ablate::results {

struct StoredExperiment {
  storage::ExperimentRecord record;
  v1::ExperimentSpec spec;  // the record's bytes, parsed
};

// Loads an experiment by its whole id. NOT_FOUND; DATA_LOSS if the spec can't be read.
absl::StatusOr<StoredExperiment> LoadExperiment(storage::Store* store, const std::string& id);

// Selects the numbers of analyses to read: those with the labels of the compared key and of the
// spec's windows, or all, for callers that read further curves.
enum class AnalysisNumbers { kOfComparison, kAll };

struct TrainedGrid;

// Selects the numbers of an experiment to compare.
struct GridQuery {
  std::string key;                              // "": the spec's primary metric
  std::optional<uint32_t> at;                   // the step to read; default: the end of each run
  std::map<std::string, std::string> baseline;  // as in report::ComparisonInput
  std::string by;                               // likewise
  AnalysisNumbers analyses = AnalysisNumbers::kAll;
  // For a comparison of several experiments: the metric by which tuned values are selected in all
  // of them ("": the spec's, if something is tuned), and the one whose base the cells' `changed`
  // refers to (null: their own).
  std::string choice_key;
  const TrainedGrid* reference = nullptr;
};

struct TrainedGrid {
  storage::ExperimentRecord record;
  v1::ExperimentSpec spec;
  report::ComparisonInput input;
  std::vector<storage::CellRecord> cells;  // in grid order; cell i is input.cells[i]
  analysis::AnalysisMetrics metrics;       // the experiment's, as requested
  // The base spec with its defaults, from which `changed` of the cells is the difference.
  spec::FieldValues base;
  // For each cell a hash of its resolved spec without the seed, and of its data.
  std::vector<std::string> spec_hashes;
  // For each cell of one experiment, `scored` of a metric of held-out data, whatever the compared
  // metric.
  std::vector<spec::FieldValues> held_out;
};

// Loads a grid with the values of its DONE runs. Without `at` values come from summaries, so that
// only curves with a non-finite value are read. A run with a damaged value counts as missing.
// INVALID_ARGUMENT names key, at, by or baseline: a key or step that no run has (if one is DONE, or
// the key was requested), an axis or label that doesn't exist. NOT_FOUND if the experiment is gone.
// Blocks on the store; memory grows with the number of cells.
absl::StatusOr<TrainedGrid> LoadGrid(storage::Store* store, StoredExperiment experiment,
                                     const GridQuery& query, const lookup::Cancelled& cancelled);

// Returns the value of a cell's resolved spec at a dotted path; "" if the path doesn't apply to it.
std::string FieldOf(const TrainedGrid& grid, size_t cell, const std::string& path);

// Returns the value that all cells have at a path; nothing if they differ or have none.
std::optional<std::string> SharedValue(const TrainedGrid& grid, const std::string& path);

// Returns, for each row of `comparison`, the cells of its runs, in their order. `comparison` was
// made of `grid`.
std::vector<std::vector<size_t>> CellsOfRows(const TrainedGrid& grid,
                                             const report::Comparison& comparison);

// A run that represents its setting on one seed, even if it lacks the compared value.
struct ChosenRun {
  uint32_t seed = 0;
  size_t cell = 0;
  bool diverged = false;
};
// Returns, for each row, all of its runs in order of seed, including those without a value.
std::vector<std::vector<ChosenRun>> ChosenRuns(const TrainedGrid& grid,
                                               const report::Comparison& comparison);

// Returns those of a row's runs that did not diverge.
std::vector<ChosenRun> Converged(const std::vector<ChosenRun>& row);

// The metric of an experiment's verdict, and the direction in which values of a key are better:
// known for losses and accuracies, given by the spec for others.
std::string PrimaryMetric(const v1::ExperimentSpec& spec);
// Returns the metric by which tuned values are selected if the compared metric can't be used, such
// as a number of an analysis: the primary one or, if that is such a number, too, eval/loss.
std::string ChoiceMetric(const v1::ExperimentSpec& spec);
report::MetricSource SourceOf(const v1::ExperimentSpec& spec);
report::Better BetterOf(const v1::ExperimentSpec& spec, const std::string& key);
// Returns the scale of a key's values: by the metric, and for the primary one as in the spec.
report::Scale ScaleOf(const v1::ExperimentSpec& spec, const std::string& key);

// Calls `visit` with the curve of `key` of each cell in `cells` (indexes, any order) that has
// points, whatever its run's state. Holds one curve at a time. Stops at the first error of `visit`
// and returns it; the same at damage, unless `damages` records it and its curve is left out.
absl::Status VisitCurves(
    storage::Store* store, const TrainedGrid& grid, const std::string& key,
    const std::vector<size_t>& cells, const lookup::Cancelled& cancelled,
    const std::function<absl::Status(size_t cell, const analysis::Points&)>& visit,
    Damages* damages = nullptr);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_TRAINED_GRID_H_
