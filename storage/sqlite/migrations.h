// The schema, version by version.
#ifndef ABLATE_STORAGE_SQLITE_MIGRATIONS_H_
#define ABLATE_STORAGE_SQLITE_MIGRATIONS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// Entry k takes a file from version k to k + 1. Entries are never changed once released.
absl::Span<const char* const> Migrations();

// FAILED_PRECONDITION if the file is newer or is not ablate's. Only reads.
absl::Status CheckSchema(Connection& db, absl::Span<const char* const> migrations);

// Whether a database that CheckSchema accepted has no schema yet.
bool IsEmpty(Connection& db);

// Brings a file to the newest version, each step in a transaction of its own, once CheckSchema
// has accepted it.
absl::Status Migrate(Connection& db, absl::Span<const char* const> migrations);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_MIGRATIONS_H_
