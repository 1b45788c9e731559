// The schema, version by version.
#ifndef ABLATE_STORAGE_SQLITE_MIGRATIONS_H_
#define ABLATE_STORAGE_SQLITE_MIGRATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// Entry k takes a file from version k to k + 1. Entries are never changed once released.
absl::Span<const char* const> Migrations();

// SQLite's application ids, which tell our files from those of other programs and from each other.
inline constexpr int64_t kStoreFile = 0x61626c61;   // "abla": ablate.db
inline constexpr int64_t kAccessFile = 0x61626c75;  // "ablu": access.db

// FAILED_PRECONDITION if the file is newer or is another kind than `application`. Only reads.
absl::Status CheckSchema(Connection& db, absl::Span<const char* const> migrations,
                         int64_t application = kStoreFile);

// Whether a database that CheckSchema accepted has no schema yet.
bool IsEmpty(Connection& db);

// Brings a file to the newest version, each step in a transaction of its own, once CheckSchema
// has accepted it.
absl::Status Migrate(Connection& db, absl::Span<const char* const> migrations,
                     int64_t application = kStoreFile);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_MIGRATIONS_H_
