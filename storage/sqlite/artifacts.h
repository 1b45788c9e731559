// Checkpoints and resume states of runs, and which blobs the rows name.
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

// A checkpoint at a step replaces an earlier one there.
void AddCheckpoint(Transaction& t, const RunRow& run, const CheckpointEvent& event,
                   uint64_t change);
// Removes a run's artifacts that came after a change number.
void RemoveArtifacts(Transaction& t, int64_t run, uint64_t after);

// Where a run can be continued.
struct ResumeState {
  uint32_t step = 0;
  std::string blob;
  uint64_t change = 0;      // its place in the order of events
  Spent spent;              // until then
  std::string environment;  // that made it; empty if its worker does not say
  std::string summaries;    // as they were then, encoded
};
std::optional<ResumeState> FindResumeState(Connection& db, int64_t run);
// Replaces the run's resume state, with its summaries as they are now. Returns the step of the one
// before, 0 if there was none.
uint32_t SaveResumeState(Transaction& t, const RunRow& run, const ResumeStateEvent& event,
                         uint64_t change);
// Whether there was one.
bool DropResumeState(Transaction& t, int64_t run);

// FAILED_PRECONDITION if the blob is not there. Null in memory, where blobs are not looked for.
absl::Status CheckPublished(Blobs* blobs, absl::string_view sha256);
// Of a blob that is there, whatever its worker said; in memory what it said, up to 1 TiB.
uint64_t SizeOf(Blobs* blobs, absl::string_view sha256, uint64_t said);
// Whether a data set, artifact, resume state, last state or analysis names a blob.
bool IsNamed(Connection& db, absl::string_view sha256);
// What becomes of a blob that nothing names any more. Resume states, and those of analyses, do not
// stay in the trash for some days: a run makes one every half minute, and each replaces the one
// before.
enum class OnSweep { kTrash, kRemove };
// A row that named a blob is gone or will be: Maintenance looks if another does.
void DropReference(Transaction& t, absl::string_view sha256, OnSweep on_sweep);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ARTIFACTS_H_
