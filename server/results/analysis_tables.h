// Makes a report's tables of the headline numbers of an experiment's analyses.
#ifndef ABLATE_SERVER_RESULTS_ANALYSIS_TABLES_H_
#define ABLATE_SERVER_RESULTS_ANALYSIS_TABLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/report/html/page.h"
#include "server/results/compare.h"
#include "storage/store.h"

namespace ablate::results {

// Returns a table for each entry of the spec's `analyses` except samples, in its order, over the
// converged runs that the comparison reads. Errors are the store's. Blocks on the store.
absl::StatusOr<std::vector<html::AnalysisTable>> AnalysisTables(storage::Store* store,
                                                                const ComparedGrid& compared);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_ANALYSIS_TABLES_H_
