// The schema of a database file and its versions.
#ifndef ABLATE_STORAGE_SQLITE_MIGRATIONS_H_
#define ABLATE_STORAGE_SQLITE_MIGRATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// Migrates a file to the next version: by statements and then, if there is one, by a function.
struct SchemaStep {
  const char* sql;
  void (*apply)(Connection& db) = nullptr;  // its errors stay in `db`
};

// Versions of the schema of one kind of database file.
struct Schema {
  int64_t application;  // SQLite's application id, which distinguishes kinds of files
  int64_t first;  // version that the first step makes of an empty file; older ones are refused
  // Each further step migrates a file to the next version. Never changed once released.
  absl::Span<const SchemaStep> steps;

  constexpr int64_t newest() const { return first + static_cast<int64_t>(steps.size()) - 1; }
};

// Returns the schema of ablate.db.
const Schema& StoreSchema();

// Returns FAILED_PRECONDITION if the file is newer, too old or of another kind. Only reads.
absl::Status CheckSchema(Connection& db, const Schema& schema);

// Returns true if a database that CheckSchema accepted has no schema yet.
bool IsEmpty(Connection& db);

// Migrates a file that CheckSchema has accepted to the newest version, each step in its own
// transaction.
absl::Status Migrate(Connection& db, const Schema& schema);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_MIGRATIONS_H_
