// Stores checkpoints and resume states of runs, and tracks which blobs are named by rows.
#ifndef ABLATE_STORAGE_SQLITE_ARTIFACTS_H_
#define ABLATE_STORAGE_SQLITE_ARTIFACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/lease_store.h"
#include "storage/records.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Adds a checkpoint; replaces an earlier one of the same step.
void AddCheckpoint(Transaction& t, const RunRow& run, const CheckpointEvent& event,
                   uint64_t change);
// Removes a run's artifacts with later change numbers.
void RemoveArtifacts(Transaction& t, int64_t run, uint64_t after);

// The state from which a run can continue.
struct ResumeState {
  uint32_t step = 0;
  std::string blob;
  uint64_t change = 0;      // its position in the order of events
  Spent spent;              // up to this state
  std::string environment;  // of the worker that made it; empty if unknown
  std::string summaries;    // at that time, encoded
};
std::optional<ResumeState> FindResumeState(Connection& db, int64_t run);
// Replaces the run's resume state and stores its present summaries with it. Returns the step of the
// previous state, 0 if there was none.
uint32_t SaveResumeState(Transaction& t, const RunRow& run, const ResumeStateEvent& event,
                         uint64_t change);
// Removes the resume state; returns true if there was one.
bool DropResumeState(Transaction& t, int64_t run);

// Returns FAILED_PRECONDITION if the blob doesn't exist. `blobs` is null in memory; then nothing is
// checked.
absl::Status CheckPublished(Blobs* blobs, absl::string_view sha256);
// Returns the size of an existing blob, whatever its worker reported; in memory the reported size,
// up to 1 TiB.
uint64_t SizeOf(Blobs* blobs, absl::string_view sha256, uint64_t said);
// Returns true if a data set, model, artifact, resume state, saved training state, run or analysis
// names a blob.
bool IsNamed(Connection& db, absl::string_view sha256);
// Returns the number of names that these have for a blob, those that the viewer sees.
uint64_t CountNames(Connection& db, const Viewer& viewer, absl::string_view sha256);
// Says where a blob goes that no row names. Resume states, also of analyses, aren't kept in the
// trash: a run makes one every half minute, and each replaces the previous one.
enum class OnSweep { kTrash, kRemove };
// Records that a row that named a blob is gone or will be, so that Maintenance checks for others.
void DropReference(Transaction& t, absl::string_view sha256, OnSweep on_sweep);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ARTIFACTS_H_
