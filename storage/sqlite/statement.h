// A prepared statement in use: parameters in, rows out.
#ifndef ABLATE_STORAGE_SQLITE_STATEMENT_H_
#define ABLATE_STORAGE_SQLITE_STATEMENT_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// A parameter for a BLOB column; plain strings are TEXT.
struct Bytes {
  absl::string_view value;
};

// Not thread-safe. Errors go to the connection, which must outlive this.
class Statement {
 public:
  // `sql` must be a literal: its address names it in the cache. `values` become ?1, ?2, … and are
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

  // Goes to the next row. False at the end or after an error.
  bool Row();
  // Goes to the end.
  void Run() {
    while (Row()) {
    }
  }

  // Columns of the current row, from 0. NULL reads as 0 or "".
  int64_t Int(int column) const;
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
    } else {
      BindText(place, value);
    }
  }
  void BindNull(int place);
  void BindInt(int place, int64_t value);
  void BindText(int place, absl::string_view value);
  void BindBlob(int place, absl::string_view value);

  Connection& db_;
  const char* sql_;
  sqlite3_stmt* statement_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_STATEMENT_H_
