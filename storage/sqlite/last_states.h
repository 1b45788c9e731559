// Saved training states of DONE runs, kept for a while: an equal run with more steps continues from
// there (origins.h).
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
  std::string environment;  // in which it was made; empty if unknown
};
std::optional<LastState> FindLastState(Connection& db, int64_t run);

// Turns the resume state of a DONE run into its saved training state if it was taken after the last
// update and a longer run could continue from it; otherwise deletes it. Keeps at most `budget`
// bytes of such states. `blobs` may be null.
void KeepLastState(Transaction& t, Blobs* blobs, int64_t run, uint64_t budget);
void DropLastState(Transaction& t, int64_t run);
// Deletes the oldest saved training states while they exceed the budget, except those that a queued
// run is to start from, and records why in the histories of their runs. Returns false if there was
// nothing to do; otherwise there may be more.
inline constexpr char kBeyondBudget[] = "to stay within --last-states";
inline constexpr char kDiskFull[] = "because the disk was full";
bool TrimLastStates(Transaction& t, uint64_t budget, absl::string_view why);
// Returns what became of the state of a DONE run that has none: "was deleted because …".
std::string WhyLost(Connection& db, int64_t run);

// Returns shorter runs with this growth key that have a saved training state, longest first.
std::vector<ShorterRun> FindShorterRuns(Connection& db, absl::string_view growth, uint32_t steps);
// Returns the longest DONE run with this growth key, of more than `above` and less than `below`
// steps, that has no saved training state.
std::optional<LostState> FindLostState(Connection& db, absl::string_view growth, uint32_t above,
                                       uint32_t below);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_LAST_STATES_H_
