// Binding, stepping and reading of prepared statements.
#include "storage/sqlite/statement.h"

#include <sqlite3.h>

namespace ablate::storage {

Statement::~Statement() {
  if (statement_ != nullptr) db_.GiveBack(sql_, statement_);
}

bool Statement::Row() {
  if (statement_ == nullptr || !db_.error().ok()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_.Fail(code);
  sqlite3_reset(statement_);
  return false;
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

absl::string_view Statement::View(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

void Statement::BindNull(int place) { sqlite3_bind_null(statement_, place); }

void Statement::BindInt(int place, int64_t value) { sqlite3_bind_int64(statement_, place, value); }

void Statement::BindText(int place, absl::string_view value) {
  // A null pointer would bind NULL, and an empty view may hold one.
  const char* bytes = value.empty() ? "" : value.data();
  const int code =
      sqlite3_bind_text64(statement_, place, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) db_.Fail(code);
}

void Statement::BindBlob(int place, absl::string_view value) {
  const char* bytes = value.empty() ? "" : value.data();
  const int code = sqlite3_bind_blob64(statement_, place, bytes, value.size(), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) db_.Fail(code);
}

}  // namespace ablate::storage
