#include "storage/sqlite/connection.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/disk_room.h"

namespace ablate::storage {
namespace {

constexpr int kBusyMilliseconds = 5000;

// Returns true if an error means a full disk; SQLite has its own code only for some such errors.
bool SaysFull(int code, int system_error) {
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE ||
         (code == SQLITE_IOERR_WRITE && IsFull(system_error));
}

absl::Status ToStatus(int code, absl::string_view message, int system_error = 0) {
  const std::string text = absl::StrCat("database: ", message, " (SQLite code ", code, ")");
  if (SaysFull(code, system_error)) {
    return absl::ResourceExhaustedError(absl::StrCat("the disk is full; ", text));
  }
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
      return absl::DataLossError(text);
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const char* path, int flags) {
  // Switches off SQLite's memory statistics, which lock at every allocation: a sixth of the time of
  // a small write. Must run before SQLite's first use; otherwise it has no effect.
  [[maybe_unused]] static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                                   /*zVfs=*/nullptr);
  std::unique_ptr<Connection> connection(new Connection(db));
  if (code != SQLITE_OK) {
    return ToStatus(code, absl::StrCat("cannot open ", path, ": ", sqlite3_errstr(code)));
  }
  sqlite3_busy_timeout(db, kBusyMilliseconds);
  // Debian's SQLite overwrites deleted data by default; nothing here is secret.
  connection->Execute("PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY");
  return connection;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::OpenFile(const std::string& path,
                                                                 Access access) {
  const bool writes = access == Access::kReadWrite;
  auto connection = Open(
      path.c_str(), writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  if (!connection.ok()) return connection.status();
  Connection& c = **connection;
  // SQLite 3.40.1 can corrupt a log that two connections reset, so only the writer may checkpoint.
  sqlite3_db_config(c.db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  c.Execute("PRAGMA wal_autocheckpoint = 0");
  if (!c.error().ok()) return c.error();
  return connection;
}

absl::Status Connection::UseLog() {
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  Execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;PRAGMA journal_size_limit = 67108864; "
      "PRAGMA cache_size = -16384");
  sqlite3_wal_hook(
      db_,
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Connection*>(self)->log_pages_ = pages;
        return SQLITE_OK;
      },
      this);
  Statement mode(*this, "PRAGMA journal_mode");
  if (mode.Row() && mode.View(0) != "wal") {
    return absl::FailedPreconditionError(
        "this file system can't hold a write-ahead log. Use a local disk");
  }
  return error_;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::OpenMemory(absl::string_view image) {
  auto connection = Open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!connection.ok()) return connection.status();
  Connection& c = **connection;
  if (!image.empty()) {
    auto* bytes = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
    if (bytes == nullptr) return ToStatus(SQLITE_NOMEM, "no memory for the image");
    std::memcpy(bytes, image.data(), image.size());
    const int code =
        sqlite3_deserialize(c.db_, "main", bytes, static_cast<sqlite3_int64>(image.size()),
                            static_cast<sqlite3_int64>(image.size()),
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    if (code != SQLITE_OK) return ToStatus(code, "cannot open the image");
  }
  // Small pages, because each page that a transaction changes is copied first.
  c.Execute("PRAGMA page_size = 1024; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
  if (!c.error().ok()) return c.error();
  return connection;
}

Connection::~Connection() {
  for (const auto& entry : idle_) sqlite3_finalize(entry.second);
  sqlite3_close(db_);
}

void Connection::Fail(int code) {
  // A failing COMMIT doesn't set sqlite3_system_errno.
  const int system_error = errno;
  if (error_.ok()) error_ = ToStatus(code, sqlite3_errmsg(db_), system_error);
}

void Connection::Execute(const char* sql) {
  if (!error_.ok()) return;
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(code);
}

bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

int64_t Connection::changed_rows() const { return sqlite3_total_changes64(db_); }

absl::Status Connection::Checkpoint(bool truncate) {
  sqlite3_busy_timeout(db_, truncate ? 100 : 0);
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int left = 0;
  const int code = sqlite3_wal_checkpoint_v2(db_, "main", mode, &left, nullptr);
  const int system_error = errno;
  sqlite3_busy_timeout(db_, kBusyMilliseconds);
  if (code == SQLITE_OK) log_pages_ = 0;
  if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY) return absl::OkStatus();
  return ToStatus(code, sqlite3_errmsg(db_), system_error);
}

bool Connection::Moved() const {
  int moved = 0;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

absl::StatusOr<std::string> Connection::Image() const {
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db_, "main", &size, 0);
  if (bytes == nullptr) return ToStatus(SQLITE_NOMEM, "no memory for an image");
  std::string image(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  return image;
}

sqlite3_stmt* Connection::Take(const char* sql) {
  if (!error_.ok()) return nullptr;
  const auto found = idle_.find(sql);
  if (found != idle_.end() && found->second != nullptr) {
    return std::exchange(found->second, nullptr);
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) Fail(code);
  return statement;
}

void Connection::GiveBack(const char* sql, sqlite3_stmt* statement) {
  sqlite3_reset(statement);
  sqlite3_stmt*& place = idle_[sql];
  if (place == nullptr) {
    place = statement;
  } else {
    sqlite3_finalize(statement);
  }
}

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

double Statement::Real(int column) const { return sqlite3_column_double(statement_, column); }

absl::string_view Statement::View(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

void Statement::BindNull(int place) { sqlite3_bind_null(statement_, place); }

void Statement::BindInt(int place, int64_t value) { sqlite3_bind_int64(statement_, place, value); }

void Statement::BindReal(int place, double value) { sqlite3_bind_double(statement_, place, value); }

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
