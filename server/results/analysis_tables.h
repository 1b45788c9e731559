// Collects the headline numbers of an experiment's analyses.
#ifndef ABLATE_SERVER_RESULTS_ANALYSIS_TABLES_H_
#define ABLATE_SERVER_RESULTS_ANALYSIS_TABLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/report/table/headline_table.h"
#include "server/results/compare.h"
#include "storage/store.h"

namespace ablate::results {

// Returns the numbers of each entry of the spec's `analyses` except samples, in its order, over the
// converged runs that the comparison reads, with their differences tested together. If settings end
// at different steps, only their ends are compared. `compared` has the numbers of all analyses.
// CANCELLED, and the store's errors. Blocks on the store.
absl::StatusOr<std::vector<report::HeadlineNumbers>> AnalysisTables(
    storage::Store* store, const ComparedGrid& compared, const lookup::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_ANALYSIS_TABLES_H_
