// Checkpoints and resume states of runs, and which blobs rows name.
#ifndef ABLATE_STORAGE_SQLITE_ARTIFACTS_H_
#define ABLATE_STORAGE_SQLITE_ARTIFACTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/leases.h"
#include "storage/records.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

absl::StatusOr<std::vector<ArtifactRecord>> ListArtifacts(Connection& db, absl::string_view run);

// A checkpoint at a step replaces an earlier one there.
void AddCheckpoint(Transaction& t, const RunRow& run, const CheckpointEvent& event,
                   uint64_t change);
// Removes a run's artifacts that came after a change number.
void RemoveArtifacts(Transaction& t, int64_t run, uint64_t after);

// Replaces the run's resume state, with its summaries as they are now. Returns the step of the one
// before, 0 if there was none.
uint32_t KeepResumeState(Transaction& t, const RunRow& run, const ResumeStateEvent& event,
                         uint64_t change);
// Whether there was one.
bool DropResumeState(Transaction& t, int64_t run);

// Whether a data set, artifact or resume state names a blob.
bool IsNamed(Connection& db, absl::string_view sha256);
// Whether a blob that nothing names any more is kept in the trash for some days. Resume states are
// not: a run makes one every half minute, and each replaces the one before.
enum class Worth { kKeeping, kNothing };
// A row that named a blob is gone or will be: Maintenance looks if another does.
void Loosen(Transaction& t, absl::string_view sha256, Worth worth);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_ARTIFACTS_H_
