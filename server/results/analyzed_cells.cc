#include "server/results/analyzed_cells.h"

#include <cstddef>
#include <set>
#include <utility>

#include "ablate/v1/comparison.pb.h"
#include "base/status_macros.h"
#include "server/lookup/names.h"
#include "server/results/compare.h"

namespace ablate::results {

absl::StatusOr<AnalyzedCells> FindAnalyzedCells(storage::Store* store, StoredExperiment stored,
                                                const lookup::Cancelled& cancelled) {
  AnalyzedCells analyzed;
  if (stored.record.counts.done == 0) return analyzed;
  v1::CompareRequest request;
  request.set_experiment(lookup::ExperimentName(stored.record.id));
  request.set_key(ChoiceMetric(stored.spec));
  ASSIGN_OR_RETURN(const auto compared,
                   CompareGrid(store, std::move(stored), request, {cancelled, 0},
                               AnalysisNumbers::kOfComparison));
  const std::vector<storage::CellRecord>& cells = compared.grid.cells;
  std::set<size_t> chosen;
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    const auto& runs = compared.comparison.rows[row].runs;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i].diverged) chosen.insert(compared.rows[row][i]);
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].state == storage::RunState::kDone) analyzed.all.push_back(cells[i]);
    if (chosen.count(i) > 0) analyzed.chosen.push_back(cells[i]);
  }
  return analyzed;
}

}  // namespace ablate::results
