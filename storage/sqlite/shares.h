// Accounting per user: device time, waiting and training runs, bytes.
#ifndef ABLATE_STORAGE_SQLITE_SHARES_H_
#define ABLATE_STORAGE_SQLITE_SHARES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Half-life of used device time: a user who had the devices alone for days waits about an hour for
// a user who starts now.
inline constexpr Micros kShareHalfLife = Micros{3600} * 1'000'000;

// Device time from which on the speed of a training run counts as measured.
inline constexpr Micros kLeastMeasured = 1'000'000;

// Adds device time to a user's account.
void Charge(Transaction& t, const std::string& user, Micros device_time);

// Returns the number of queued and training runs of a user's active experiments, whoever is
// charged.
uint64_t OpenRuns(Connection& db, absl::string_view user);
absl::Status TooManyOpenRuns(absl::string_view user, uint64_t would_be, int64_t most);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_SHARES_H_
