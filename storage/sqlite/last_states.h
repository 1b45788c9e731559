// The last states of runs that are done, kept for a while: the same run with more steps goes on
// from there (origins.h).
#ifndef ABLATE_STORAGE_SQLITE_LAST_STATES_H_
#define ABLATE_STORAGE_SQLITE_LAST_STATES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

struct LastState {
  uint32_t step = 0;
  std::string blob;
  uint64_t bytes = 0;
  std::string environment;  // that made it; empty if that is not known
};
std::optional<LastState> FindLastState(Connection& db, int64_t run);

// Makes the resume state of a run that is done its last state, if it was taken after the last
// update and a longer run could go on from it; otherwise it goes. At most `budget` bytes are kept.
// `blobs` may be null.
void KeepLastState(Transaction& t, Blobs* blobs, int64_t run, uint64_t budget);
void DropLastState(Transaction& t, int64_t run);
// Lets the oldest last states go while there are more bytes of them than the budget, but none that
// a queued run is to begin from. False when there was nothing to do; otherwise there may be more.
bool TrimLastStates(Transaction& t, uint64_t budget);

// Shorter runs of this growth that have a last state, the longest first.
std::vector<ShorterRun> FindShorterRuns(Connection& db, absl::string_view growth, uint32_t steps);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_LAST_STATES_H_
