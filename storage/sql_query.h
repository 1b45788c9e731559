// Answers one SELECT of a user over read-only views of a store. For a process of its own, which may
// be killed: a single step of SQLite can take minutes and can't be interrupted.
#ifndef ABLATE_STORAGE_SQL_QUERY_H_
#define ABLATE_STORAGE_SQL_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/records.h"

namespace ablate::storage {

inline constexpr size_t kMaxSqlBytes = 64'000;            // of a statement
inline constexpr int64_t kMaxSqlHeapBytes = 256'000'000;  // of SQLite while it answers
inline constexpr int kMaxSqlValueBytes = 1'000'000;       // of a text or blob

// A column of a view: its SQLite type and its meaning, for users; and the expression that gives it,
// null in a virtual table.
struct SqlColumn {
  const char* name;
  const char* type;
  const char* meaning;
  const char* expression;
};

// A view. `from` is the end of its SELECT, in which $T stands for the rows of the table T that the
// user may see; null: a virtual table.
struct SqlView {
  const char* name;
  const char* meaning;
  absl::Span<const SqlColumn> columns;
  const char* from;
};

// A table of the store that views read: the columns that they read; the condition on rows that a
// user may see, in which $visible stands for "private_to is empty or the user" and $store for the
// store; and the keys and index by which rows are found, null if there is none.
struct StoredTable {
  const char* name;
  const char* columns;
  const char* visible;
  const char* primary_key;
  const char* unique;
  const char* index;
};

// Returns the tables that views read.
absl::Span<const StoredTable> StoredTables();

// Returns the views that statements can read, in the order of the documentation.
absl::Span<const SqlView> SqlViews();

// Returns the functions that statements can call, sorted.
absl::Span<const absl::string_view> SqlFunctions();

struct SqlQuery {
  std::string folder;  // of the store, which a server may be writing
  Viewer viewer;
  std::string statement;
  // Returns the name of a kind of analysis by its stored request.
  std::string (*analysis_kind)(absl::string_view request) = nullptr;
};

struct SqlBlob {
  absl::string_view bytes;
};
// NULL is monostate. Texts are UTF-8; others are blobs.
using SqlValue = std::variant<std::monostate, int64_t, double, absl::string_view, SqlBlob>;

// Takes a result. An error ends the statement and is returned by AnswerSql.
class SqlSink {
 public:
  virtual ~SqlSink() = default;
  virtual absl::Status Columns(const std::vector<std::string>& names) = 0;
  // The values are valid during the call.
  virtual absl::Status Row(const std::vector<SqlValue>& values) = 0;
};

// Passes the result of a statement to `sink`. INVALID_ARGUMENT with SQLite's message if the
// statement is wrong or asks for something else than the views; RESOURCE_EXHAUSTED if it needs more
// than kMaxSqlHeapBytes. Limits SQLite's heap in the whole process. Has no limit on time. Calls
// `opened` when no more files are to be opened.
absl::Status AnswerSql(const SqlQuery& query, void (*opened)(), SqlSink* sink);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQL_QUERY_H_
