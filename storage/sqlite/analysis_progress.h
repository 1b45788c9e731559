// Changes the states of analyses, and removes them together with their runs.
#ifndef ABLATE_STORAGE_SQLITE_ANALYSIS_PROGRESS_H_
#define ABLATE_STORAGE_SQLITE_ANALYSIS_PROGRESS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/sqlite/analyses.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Queues an ended analysis again, from its beginning: it has no saved state.
void QueueAgain(Transaction& t, const AnalysisRow& analysis);

// Removes at most `limit` analyses that have this run among their subjects, with everything they
// name. Returns the number removed.
int RemoveAnalyses(Transaction& t, int64_t run, int limit);

// Changes QUEUED or RUNNING to CANCELLED; does nothing if the analysis has ended or is gone.
void CancelIfOpen(Transaction& t, absl::string_view name);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ANALYSIS_PROGRESS_H_
