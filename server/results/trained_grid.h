// A stored experiment as the statistics want it: its grid, what every run gave, and its curves.
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
#include "server/report/compare/comparison.h"
#include "server/results/series.h"
#include "server/rpc/cancelled.h"
#include "server/spec/field_values.h"
#include "storage/store.h"

namespace ablate::results {

struct StoredExperiment {
  storage::ExperimentRecord record;
  v1::ExperimentSpec spec;  // what the record's bytes are
};

// `id` is whole. NOT_FOUND; DATA_LOSS if the spec can't be read.
absl::StatusOr<StoredExperiment> LoadExperiment(storage::Store* store, const std::string& id);

// Which numbers of analyses are read: those of the labels of what is compared and of the windows
// that the spec reports, or of all, for who goes on to other curves.
enum class AnalysisNumbers { kOfComparison, kAll };

struct TrainedGrid;

// What of an experiment is compared.
struct GridQuery {
  std::string key;                              // "": the spec's primary metric
  std::optional<uint32_t> at;                   // the step read; without it where each run ended
  std::map<std::string, std::string> baseline;  // as report::ComparisonInput's
  std::string by;                               // likewise
  AnalysisNumbers analyses = AnalysisNumbers::kAll;
  // Of experiments that are compared with each other: the metric by which tuned values are chosen
  // in any of them ("": the spec's, if something is tuned), and the one whose base `changed` of the
  // cells differs from (null: their own).
  std::string choice_key;
  const TrainedGrid* reference = nullptr;
};

struct TrainedGrid {
  storage::ExperimentRecord record;
  v1::ExperimentSpec spec;
  report::ComparisonInput input;
  std::vector<storage::CellRecord> cells;  // in grid order; cell i is input.cells[i]
  analysis::AnalysisMetrics metrics;       // of the experiment, as asked for
  // The base spec with its defaults: what `changed` of the cells differs from.
  spec::FieldValues base;
  // Of each cell a hash of its resolved spec without the seed, and of its data.
  std::vector<std::string> spec_hashes;
};

// Only runs that are DONE have a value: without `at` it is read from summaries, so no curve is
// touched (but those that hold a non-finite value). A run whose value is damaged counts as missing.
// INVALID_ARGUMENT names key, at, by or baseline: a key or step that no run has (if one is DONE, or
// the key was asked for), an axis or label that there is not. NOT_FOUND if the experiment is gone.
// Blocks on the store; memory grows with cells.
absl::StatusOr<TrainedGrid> LoadGrid(storage::Store* store, StoredExperiment experiment,
                                     const GridQuery& query, const rpc::Cancelled& cancelled);

// What the resolved spec of a cell has at a dotted path; "" where the path means nothing to it.
std::string FieldOf(const TrainedGrid& grid, size_t cell, const std::string& path);

// For each row of `comparison`, which was made of `grid`, the cells of its runs: as many, in their
// order.
std::vector<std::vector<size_t>> CellsOfRows(const TrainedGrid& grid,
                                             const report::Comparison& comparison);

// A run that stands for its setting on one seed, whether or not it has what is compared.
struct ChosenRun {
  uint32_t seed = 0;
  size_t cell = 0;
  bool diverged = false;
};
// Likewise all runs of each row, those without a value included, by ascending seed.
std::vector<std::vector<ChosenRun>> ChosenRuns(const TrainedGrid& grid,
                                               const report::Comparison& comparison);

// Returns those of a row's runs that did not diverge.
std::vector<ChosenRun> Converged(const std::vector<ChosenRun>& row);

// The metric that an experiment's verdict is about, and which values of a key are better: of losses
// and accuracies that is known, of others only what the spec says.
std::string PrimaryMetric(const v1::ExperimentSpec& spec);
// The metric by which values of tuned axes are chosen where what is compared says nothing of it, as
// a number of an analysis: the primary one, or where that is such a number, too, eval/loss.
std::string ChoiceMetric(const v1::ExperimentSpec& spec);
report::Better BetterOf(const v1::ExperimentSpec& spec, const std::string& key);
// How values of a key are compared: by the metric, and of the primary one as the spec says.
report::Scale ScaleOf(const v1::ExperimentSpec& spec, const std::string& key);

// Hands over the curve of `key` of each cell in `cells` (indexes, any order) that has points of it,
// whatever its run's state: one at a time, so memory is bounded by the longest. Stops at the first
// error that `visit` returns and gives it back; so does damage, unless it goes to `damages` instead
// and its curve is left out.
absl::Status VisitCurves(
    storage::Store* store, const TrainedGrid& grid, const std::string& key,
    const std::vector<size_t>& cells, const rpc::Cancelled& cancelled,
    const std::function<absl::Status(size_t cell, const analysis::Points&)>& visit,
    Damages* damages = nullptr);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_TRAINED_GRID_H_
