// Who is charged for what: device time, runs that wait or train, bytes.
#ifndef ABLATE_STORAGE_SQLITE_SHARES_H_
#define ABLATE_STORAGE_SQLITE_SHARES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// So long it takes until what was used counts half: a colleague who had the devices to themselves
// for days waits for about an hour behind one who comes anew.
inline constexpr Micros kShareHalfLife = Micros{3600} * 1'000'000;

// Adds device time to what a user has had.
void Charge(Transaction& t, const std::string& user, Micros device_time);

// Runs that are queued or training and that active experiments of a user have, whoever is charged
// for them.
uint64_t OpenRuns(Connection& db, absl::string_view user);
absl::Status TooManyOpenRuns(absl::string_view user, uint64_t would_be, int64_t most);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_SHARES_H_
