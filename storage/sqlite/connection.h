// Wraps an SQLite connection: settings, prepared statements with parameters and rows, and the first
// error.
#ifndef ABLATE_STORAGE_SQLITE_CONNECTION_H_
#define ABLATE_STORAGE_SQLITE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ablate::storage {

// Not thread-safe: for one thread at a time.
//
// The first error stays (error()); afterwards statements do nothing and return no rows. So a
// request can run to its end and check for errors only there; it is then rolled back as a whole.
class Connection {
 public:
  enum class Access { kReadWrite, kReadOnly };

  // Opens a file, or creates it if `access` allows writing; doesn't change its content.
  static absl::StatusOr<std::unique_ptr<Connection>> OpenFile(const std::string& path,
                                                              Access access);
  // Opens a database in memory, empty or a copy of an Image().
  static absl::StatusOr<std::unique_ptr<Connection>> OpenMemory(absl::string_view image);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns the first error. RESOURCE_EXHAUSTED: the disk is full. DATA_LOSS: the file is corrupt
  // or the disk failed.
  const absl::Status& error() const { return error_; }
  void ClearError() { error_ = absl::OkStatus(); }

  // Puts the file into WAL mode; for the writing connection. The log is checkpointed only by
  // Checkpoint and at the end.
  absl::Status UseLog();

  // Runs statements without parameters or rows.
  void Execute(const char* sql);
  bool in_transaction() const;

  // Returns the number of rows changed so far by this connection, including those rolled back.
  int64_t changed_rows() const;

  // Returns the number of pages in the log after this connection's last commit.
  int log_pages() const { return log_pages_; }
  // Copies the log into the file. With `truncate`, waits briefly for readers and empties the log; a
  // reader that prevents this isn't an error.
  absl::Status Checkpoint(bool truncate);

  // Returns true if the file was moved, removed or replaced since it was opened.
  bool Moved() const;

  // Returns all bytes of the database.
  absl::StatusOr<std::string> Image() const;

 private:
  friend class Statement;
  explicit Connection(sqlite3* db) : db_(db) {}
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const char* path, int flags);

  void Fail(int code);
  // Returns a prepared statement, from the cache unless it is in use. `sql` is a literal.
  sqlite3_stmt* Take(const char* sql);
  void GiveBack(const char* sql, sqlite3_stmt* statement);

  sqlite3* db_;
  absl::Status error_;
  int log_pages_ = 0;
  std::unordered_map<const char*, sqlite3_stmt*> idle_;
};

// A parameter for a BLOB column; plain strings become TEXT.
struct Bytes {
  absl::string_view value;
};

// A prepared statement in use: binds parameters, reads rows. Not thread-safe. Errors go to the
// connection, which must outlive this object.
class Statement {
 public:
  // `sql` must be a literal: its address is the key in the cache. `values` become ?1, ?2, … and are
  // copied.
  template <typename... Values>
  explicit Statement(Connection& db, const char* sql, const Values&... values)
      : db_(db), sql_(sql), statement_(db.Take(sql)) {
    [[maybe_unused]] int place = 0;
    (BindValue(++place, values), ...);
  }
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Moves to the next row. Returns false at the end or after an error.
  bool Row();
  // Runs to the end, skipping any rows.
  void Run() {
    while (Row()) {
    }
  }

  // Return columns of the current row, counted from 0. NULL reads as 0 or "".
  int64_t Int(int column) const;
  double Real(int column) const;
  template <typename Integer>
  Integer As(int column) const {
    return static_cast<Integer>(Int(column));
  }
  // Valid until the next Row().
  absl::string_view View(int column) const;
  std::string Text(int column) const { return std::string(View(column)); }

 private:
  template <typename Value>
  void BindValue(int place, const Value& value) {
    if (statement_ == nullptr) return;
    if constexpr (std::is_same_v<Value, std::nullptr_t>) {
      BindNull(place);
    } else if constexpr (std::is_same_v<Value, Bytes>) {
      BindBlob(place, value.value);
    } else if constexpr (std::is_integral_v<Value>) {
      BindInt(place, static_cast<int64_t>(value));
    } else if constexpr (std::is_floating_point_v<Value>) {
      BindReal(place, value);
    } else {
      BindText(place, value);
    }
  }
  void BindNull(int place);
  void BindInt(int place, int64_t value);
  void BindReal(int place, double value);
  void BindText(int place, absl::string_view value);
  void BindBlob(int place, absl::string_view value);

  Connection& db_;
  const char* sql_;
  sqlite3_stmt* statement_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_CONNECTION_H_
