// A run's metric keys and their summaries, updated as points arrive.
#ifndef ABLATE_STORAGE_SQLITE_SUMMARIES_H_
#define ABLATE_STORAGE_SQLITE_SUMMARIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

inline constexpr size_t kMaxKeys = 2000;

struct KeySummary {
  Summary summary;
  uint32_t last_step = 0;  // of any point, finite or not
};

// A key's index in this list is its number in row groups and chunks.
using KeySummaries = std::vector<KeySummary>;

// Encodes summaries, sealed (bytes.h) for the run with this name: for each key its text and
// numbers.
std::string EncodeSummaries(absl::string_view run, const KeySummaries& summaries);
// Decodes summaries. DATA_LOSS if `bytes` are malformed, changed or another run's.
absl::StatusOr<KeySummaries> DecodeSummaries(absl::string_view run, absl::string_view bytes);

struct FoundKey {
  uint32_t number = 0;
  uint64_t count = 0;      // number of points
  uint32_t last_step = 0;  // of the last point
};
// Finds a key in encoded summaries without decoding all of them; nothing if it isn't there.
// DATA_LOSS as DecodeSummaries.
absl::StatusOr<std::optional<FoundKey>> FindKey(absl::string_view run, absl::string_view bytes,
                                                absl::string_view key);

// Loads the summaries of a run by its row and name; empty before its first point. DATA_LOSS, with a
// message that begins with "its summaries", if they are damaged or missing although the run has
// points: continuing would give new keys numbers that other keys have.
absl::StatusOr<KeySummaries> LoadSummaries(Connection& db, int64_t run, absl::string_view name);
// Finds one key in a run's stored summaries; errors as LoadSummaries.
absl::StatusOr<std::optional<FoundKey>> LoadKey(Connection& db, int64_t run, absl::string_view name,
                                                absl::string_view key);

// Adds the points of one column. The result doesn't depend on how points are cut into columns.
void AddPoints(const Column& column, KeySummary* summary);

// Stores a run's summaries instead of those that it has.
void SaveSummaries(Connection& db, int64_t run, absl::string_view name,
                   const KeySummaries& summaries);

// Leaves a run without last values, because it has ended before its last step: its training loss or
// gradient norm isn't finite. Damaged summaries stay as they are.
void ForgetLastValues(Connection& db, int64_t run, absl::string_view name);

// Returns the numbers of the columns' keys, in their order; appends new keys to `summaries`.
// INVALID_ARGUMENT, naming the key, for an invalid column: empty, steps and values of different
// sizes, steps that don't ascend or aren't after the run's last, or a key that is repeated, too
// long, or one too many.
absl::StatusOr<std::vector<uint32_t>> NumberKeys(const std::vector<Column>& columns,
                                                 KeySummaries* summaries);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_SUMMARIES_H_
