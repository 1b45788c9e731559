// Analyses that the specs of experiments ask for: an experiment ends with the last of them.
#ifndef ABLATE_STORAGE_SQLITE_EXPERIMENT_ANALYSES_H_
#define ABLATE_STORAGE_SQLITE_EXPERIMENT_ANALYSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// The experiment's spec asks for the analysis. FAILED_PRECONDITION if the experiment is no longer
// ACTIVE.
absl::Status LinkAnalysis(Transaction& t, const NewAnalysis& asked, int64_t analysis);
// Whether it has asked for it before.
bool IsLinked(Connection& db, const NewAnalysis& asked, int64_t analysis);
// Returns true if some experiment's spec asks for it.
bool IsAskedFor(Connection& db, int64_t analysis);
// The analysis has ended, or its row is gone: experiments that waited for nothing else end.
void SettleAskers(Transaction& t, int64_t analysis);
// Open analyses that no active experiment but this one's spec asks for.
std::vector<std::string> AnalysesOnlyOf(Connection& db, int64_t experiment);
// Of an experiment's spec; state and failure are the columns of its row.
AnalysisCounts CountAnalyses(Connection& db, int64_t experiment, int state, std::string failure);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_EXPERIMENT_ANALYSES_H_
