// Keeps the metrics of ended runs where questions find them by value.
#ifndef ABLATE_STORAGE_SQLITE_FINAL_VALUES_H_
#define ABLATE_STORAGE_SQLITE_FINAL_VALUES_H_

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Stored as the last value of a run without one. SQLite takes NaN for NULL, which a key can't be.
inline constexpr double kNoFinalValue = std::numeric_limits<double>::infinity();

// Copies the values of a run that has ended from its summaries; none if those are damaged.
void KeepFinalValues(Transaction& t, int64_t run, absl::string_view name);
// Does the same for the ended runs of an experiment's cells at places from `begin` up to `end`.
void KeepFinalValuesOf(Transaction& t, int64_t experiment, int64_t begin, int64_t end);
// Removes the values of a run that is queued again, or removed.
void ForgetFinalValues(Transaction& t, int64_t run);

// Corrects the last values of a store in whose summaries they were the last finite ones: a key
// whose last point isn't finite has none, and no key of a run that ended as ForgetLastValues
// describes.
void CorrectLastValues(Connection& db);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_FINAL_VALUES_H_
