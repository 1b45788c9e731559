// Reads the rows of analyses.
#ifndef ABLATE_STORAGE_SQLITE_ANALYSES_H_
#define ABLATE_STORAGE_SQLITE_ANALYSES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// The columns of an analysis by which it is changed.
struct AnalysisRow {
  int64_t id = 0;
  AnalysisState state = AnalysisState::kQueued;
  std::string state_blob;
  std::string artifact;
};

// Returns true if it is QUEUED or RUNNING.
bool IsOpen(const AnalysisRow& analysis);
std::optional<AnalysisRow> FindAnalysis(Connection& db, absl::string_view name);
// Reads an analysis by its row number, without its labels.
AnalysisRecord ReadAnalysis(Connection& db, int64_t id);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ANALYSES_H_
