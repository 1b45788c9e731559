// Tracks the analyses that experiments' specs ask for. An experiment ends when the last of them
// has.
#ifndef ABLATE_STORAGE_SQLITE_EXPERIMENT_ANALYSES_H_
#define ABLATE_STORAGE_SQLITE_EXPERIMENT_ANALYSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Records that the experiment's spec asks for the analysis. FAILED_PRECONDITION if the experiment
// isn't ACTIVE any more.
absl::Status LinkAnalysis(Transaction& t, const NewAnalysis& asked, int64_t analysis);
// Returns true if it has asked for it before.
bool IsLinked(Connection& db, const NewAnalysis& asked, int64_t analysis);
// Returns true if some experiment's spec asks for it.
bool IsAskedFor(Connection& db, int64_t analysis);
// Ends experiments that waited only for this analysis. Call it after the analysis has ended or its
// row was removed.
void SettleAskers(Transaction& t, int64_t analysis);
// Returns the open analyses that only this experiment's spec asks for, among active experiments.
std::vector<std::string> AnalysesOnlyOf(Connection& db, int64_t experiment);
// Counts the analyses of an experiment's spec; state and failure are columns of its row.
AnalysisCounts CountAnalyses(Connection& db, int64_t experiment, int state, std::string failure);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_EXPERIMENT_ANALYSES_H_
