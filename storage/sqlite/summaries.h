// A run's metric keys and their summaries, kept as points arrive.
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

// The place of a key in this list is its number in row groups and chunks.
using KeySummaries = std::vector<KeySummary>;

// Sealed (bytes.h) as those of the run with this name: for each key its text and its numbers.
std::string EncodeSummaries(absl::string_view run, const KeySummaries& summaries);
// DATA_LOSS if `bytes` are malformed, not as they were written or another run's.
absl::StatusOr<KeySummaries> DecodeSummaries(absl::string_view run, absl::string_view bytes);

struct FoundKey {
  uint32_t number = 0;
  uint64_t count = 0;      // of points
  uint32_t last_step = 0;  // of the last one
};
// A key in encoded summaries, if it is there, without decoding all of them. DATA_LOSS likewise.
absl::StatusOr<std::optional<FoundKey>> FindKey(absl::string_view run, absl::string_view bytes,
                                                absl::string_view key);

// Those that the database has of a run, by its row and name; none before its first point.
// DATA_LOSS, whose message begins with "its summaries", if they are damaged or if they alone are
// gone: a row that lost its number would take the run's points with it, and new ones would get
// numbers of keys that have others already.
absl::StatusOr<KeySummaries> LoadSummaries(Connection& db, int64_t run, absl::string_view name);
// A key in them likewise.
absl::StatusOr<std::optional<FoundKey>> LoadKey(Connection& db, int64_t run, absl::string_view name,
                                                absl::string_view key);

// Adds the points of one column. Its result does not depend on how points are cut into columns.
void AddPoints(const Column& column, KeySummary* summary);

// Numbers of the columns' keys, in their order; new keys are appended to `summaries`.
// INVALID_ARGUMENT, naming the key, for whatever a column may not be: empty, steps and values of
// different sizes, steps that do not ascend or are not after the run's last, a key twice, too long
// or one too many.
absl::StatusOr<std::vector<uint32_t>> NumberKeys(const std::vector<Column>& columns,
                                                 KeySummaries* summaries);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_SUMMARIES_H_
