#include "storage/sql_query.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/sql_tables.h"

// A user's statement runs with an authorizer on an empty database to which the store is attached.
// Tables can be read only from the bodies of views with unguessable names, which show the columns
// that the user may see. The names that users know are views of these. SQLite tells the authorizer
// the name of the view, or of the WITH clause, that reads a table; so the names must be
// unguessable: a user may call a WITH clause `runs`.
//
// For a user who doesn't see everything, the views read temporary tables. The statement is prepared
// to learn which of them it reads, the visible rows are copied, and the store is detached before
// the statement is prepared again and runs. The authorizer alone wouldn't do: SQLite doesn't ask it
// about columns of JOIN … USING. Nor would a condition in the views: SQLite may evaluate terms of
// the statement on a row before the view's condition, and their errors and times would tell the
// content of hidden rows.
namespace ablate::storage {
namespace {

struct SqlLimit {
  int id;
  int value;
  const char* error = nullptr;  // beginning of SQLite's error if that lacks the number
};
constexpr SqlLimit kSqlLimits[] = {
    {SQLITE_LIMIT_LENGTH, kMaxSqlValueBytes, "string or blob too big"},
    {SQLITE_LIMIT_SQL_LENGTH, static_cast<int>(kMaxSqlBytes)},
    {SQLITE_LIMIT_COLUMN, 100, "too many columns"},
    {SQLITE_LIMIT_COLUMN, 100, "too many terms in ORDER BY"},
    {SQLITE_LIMIT_COLUMN, 100, "too many terms in GROUP BY"},
    {SQLITE_LIMIT_EXPR_DEPTH, 50},
    {SQLITE_LIMIT_COMPOUND_SELECT, 10, "too many terms in compound SELECT"},
    {SQLITE_LIMIT_VDBE_OP, 50'000},
    {SQLITE_LIMIT_FUNCTION_ARG, 8, "too many arguments on function"},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100, "LIKE or GLOB pattern too complex"},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 1},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};

// Returns ", at most N" for an error about a limit; otherwise "".
std::string AtMost(absl::string_view error) {
  for (const SqlLimit& limit : kSqlLimits) {
    const bool about = limit.error != nullptr && absl::StartsWith(error, limit.error);
    if (about) return absl::StrCat(", at most ", limit.value);
  }
  return "";
}

struct SqlSwitch {
  int id;
  int value;
};
constexpr SqlSwitch kSqlSwitches[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {SQLITE_DBCONFIG_DQS_DML, 0},
    {SQLITE_DBCONFIG_DQS_DDL, 0},
    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
    {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
};

// Returns a view's name without arguments.
absl::string_view PlainName(const SqlView& view) {
  const absl::string_view name = view.name;
  return name.substr(0, name.find('('));
}

const SqlView* FindSqlView(absl::string_view name) {
  for (const SqlView& view : SqlViews()) {
    if (absl::EqualsIgnoreCase(PlainName(view), name)) return &view;
  }
  return nullptr;
}

bool IsSqlFunction(absl::string_view name) {
  const auto functions = SqlFunctions();
  return std::find(functions.begin(), functions.end(), name) != functions.end();
}

std::string SqlQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
}

// Functions of the views' bodies.
void NumberOfText(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  double number = 0;
  if (text != nullptr && absl::SimpleAtod(text, &number) && std::isfinite(number))
    sqlite3_result_double(context, number);
}

void UtcOfMicros(sqlite3_context* context, int, sqlite3_value** values) {
  const Micros micros = sqlite3_value_int64(values[0]);
  if (micros == 0) return;
  const std::string text =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMicros(micros), absl::UTCTimeZone());
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void KindOfAnalysis(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* query = static_cast<const SqlQuery*>(sqlite3_user_data(context));
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(values[0]));
  const auto size = static_cast<size_t>(sqlite3_value_bytes(values[0]));
  if (query->analysis_kind == nullptr || bytes == nullptr) return;
  const std::string kind = query->analysis_kind(absl::string_view(bytes, size));
  sqlite3_result_text64(context, kind.data(), kind.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// Answers one statement; then it is spent.
class SqlGate {
 public:
  explicit SqlGate(const SqlQuery& query)
      : query_(query),
        hidden_(absl::StrCat("v", process::RandomId(), "_")),
        stored_(absl::StrCat(hidden_, "store")) {}
  ~SqlGate() {
    sqlite3_finalize(statement_);
    sqlite3_close(db_);
  }
  SqlGate(const SqlGate&) = delete;
  SqlGate& operator=(const SqlGate&) = delete;

  absl::Status Open();
  absl::Status Prepare();
  // Copies the visible rows that the prepared statement may read, and detaches the store. Then the
  // statement is to be prepared again.
  absl::Status CopyRows();
  absl::Status Run(SqlSink* sink);

 private:
  absl::Status OpenDatabase();
  absl::Status ListTables();
  int AddFunctions();
  absl::Status MakeCopy(const StoredTable& table);
  std::string CopyOf(const StoredTable& table) const;
  absl::Status MakeView(const SqlView& view);
  std::string SelectOf(const SqlView& view) const;
  absl::Status Execute(const std::string& sql);
  absl::Status CheckOnly(const char* rest);
  static int Authorize(void* self, int action, const char* first, const char* second,
                       const char* database, const char* context);
  bool Admits(int action, absl::string_view first, absl::string_view second,
              absl::string_view database, absl::string_view context);
  bool AdmitsRead(absl::string_view table, absl::string_view database, absl::string_view context);
  absl::Status Error(int code) const;
  SqlValue ValueOf(int column) const;

  const SqlQuery& query_;
  const std::string hidden_;  // prefix of the unguessable names
  const std::string stored_;  // the store, attached to `db_`
  std::unique_ptr<Connection> store_;
  std::unique_ptr<SqlTableSource> source_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  std::set<std::string> tables_;  // all that SQLite knows without the views, in small letters
  std::set<std::string> copies_;  // that the statement may read
  bool is_statement_ = false;     // what SQLite prepares is the user's
  std::string refused_;           // by the authorizer
};

absl::Status SqlGate::Open() {
  RETURN_IF_ERROR(OpenDatabase());
  RETURN_IF_ERROR(ListTables());
  for (const StoredTable& table : StoredTables()) {
    if (absl::Status made = MakeCopy(table); !made.ok()) return made;
  }
  for (const SqlView& view : SqlViews()) {
    if (view.from == nullptr) continue;
    if (absl::Status made = MakeView(view); !made.ok()) return made;
  }
  // A virtual table is made at its first use, which the authorizer would refuse.
  RETURN_IF_ERROR(Execute("SELECT 1 FROM metrics, points LIMIT 0"));
  for (const SqlSwitch& one : kSqlSwitches) {
    sqlite3_db_config(db_, one.id, one.value, static_cast<int*>(nullptr));
  }
  for (const SqlLimit& limit : kSqlLimits) sqlite3_limit(db_, limit.id, limit.value);
  sqlite3_set_authorizer(db_, Authorize, this);
  return absl::OkStatus();
}

absl::Status SqlGate::OpenDatabase() {
  const std::string path = absl::StrCat(query_.folder, "/ablate.db");
  ASSIGN_OR_RETURN(store_, Connection::OpenFile(path, Connection::Access::kReadOnly));
  source_ = std::make_unique<SqlTableSource>(SqlTableSource{*store_, hidden_ + "runs"});
  // The connection's first read opens its files.
  Statement(*store_, "SELECT change FROM store").Run();
  if (!store_->error().ok()) return store_->error();
  constexpr int kBusyMilliseconds = 5000;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  int code = sqlite3_open_v2(":memory:", &db_, flags, /*zVfs=*/nullptr);
  if (code == SQLITE_OK) code = sqlite3_busy_timeout(db_, kBusyMilliseconds);
  if (code == SQLITE_OK) code = AddFunctions();
  if (code == SQLITE_OK) code = AddSqlTables(db_, source_.get());
  if (code != SQLITE_OK) {
    return absl::UnavailableError(absl::StrCat("cannot open the database: ", sqlite3_errstr(code)));
  }
  return Execute(absl::StrCat("ATTACH ", SqlQuoted(path), " AS ", stored_,
                              "; PRAGMA temp_store = MEMORY; PRAGMA ", stored_,
                              ".cache_size = -32768"));
}

absl::Status SqlGate::ListTables() {
  const std::string all =
      absl::StrCat("SELECT name FROM ", stored_,
                   ".sqlite_schema UNION SELECT name FROM pragma_module_list UNION SELECT "
                   "'pragma_' || name FROM pragma_pragma_list UNION VALUES ('sqlite_schema'), "
                   "('sqlite_master'), ('sqlite_temp_schema'), ('sqlite_temp_master')");
  sqlite3_stmt* names = nullptr;
  int code = sqlite3_prepare_v2(db_, all.c_str(), -1, &names, nullptr);
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(names);
    if (code != SQLITE_ROW) break;
    tables_.insert(absl::AsciiStrToLower(
        absl::NullSafeStringView(reinterpret_cast<const char*>(sqlite3_column_text(names, 0)))));
  }
  sqlite3_finalize(names);
  if (code == SQLITE_DONE) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot read the database: ", sqlite3_errmsg(db_)));
}

int SqlGate::AddFunctions() {
  struct Function {
    const char* name;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  int code = SQLITE_OK;
  for (const Function& function : {Function{"number", NumberOfText}, Function{"utc", UtcOfMicros},
                                   Function{"analysis_kind", KindOfAnalysis}}) {
    code = sqlite3_create_function(db_, function.name, 1,
                                   SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                   const_cast<SqlQuery*>(&query_), function.call, nullptr, nullptr);
    if (code != SQLITE_OK) break;
  }
  return code;
}

absl::Status SqlGate::MakeView(const SqlView& view) {
  RETURN_IF_ERROR(
      Execute(absl::StrCat("CREATE TEMP VIEW ", hidden_, view.name, " AS ", SelectOf(view))));
  return Execute(
      absl::StrCat("CREATE TEMP VIEW ", view.name, " AS SELECT * FROM temp.", hidden_, view.name));
}

// Returns the name of the rows of a table that the user may see.
std::string SqlGate::CopyOf(const StoredTable& table) const {
  if (query_.viewer.sees_all) return absl::StrCat(stored_, ".", table.name);
  return absl::StrCat("temp.", hidden_, "rows_", table.name);
}

absl::Status SqlGate::MakeCopy(const StoredTable& table) {
  if (query_.viewer.sees_all) return absl::OkStatus();
  // The types decide how SQLite compares values. With NOT NULL the planner expects one row for a
  // value of a unique index.
  std::string columns;
  const auto keep = [](void* kept, int, char** values, char**) {
    *static_cast<std::string*>(kept) = std::string(absl::NullSafeStringView(values[0]));
    return 0;
  };
  const std::string typed = absl::StrCat(
      "SELECT group_concat(name || ' ' || type || ' NOT NULL') FROM pragma_table_info('",
      table.name, "', '", stored_, "') WHERE instr(', ", table.columns, ",', ', ' || name || ',')");
  if (sqlite3_exec(db_, typed.c_str(), keep, &columns, nullptr) != SQLITE_OK) {
    return absl::InternalError(absl::StrCat("cannot prepare the views: ", sqlite3_errmsg(db_)));
  }
  const std::string copy = absl::StrCat(hidden_, "rows_", table.name);
  std::string sql = absl::StrCat("CREATE TEMP TABLE ", copy, " (", columns, ", PRIMARY KEY (",
                                 table.primary_key, ")");
  if (table.unique != nullptr) absl::StrAppend(&sql, ", UNIQUE (", table.unique, ")");
  absl::StrAppend(&sql, ") WITHOUT ROWID;");
  if (table.index != nullptr) {
    absl::StrAppend(&sql, "CREATE INDEX temp.", copy, "_index ON ", copy, " (", table.index, ")");
  }
  return Execute(sql);
}

absl::Status SqlGate::CopyRows() {
  is_statement_ = false;
  if (query_.viewer.sees_all) return Execute("PRAGMA query_only = ON");
  if (source_->is_read) copies_.insert(hidden_ + "rows_runs");
  const std::string visible =
      absl::StrCat("private_to IN ('', ", SqlQuoted(query_.viewer.user), ")");
  std::string sql = "BEGIN;";
  for (const StoredTable& table : StoredTables()) {
    if (copies_.count(absl::StrCat(hidden_, "rows_", table.name)) == 0) continue;
    absl::StrAppend(
        &sql, "INSERT INTO ", CopyOf(table), " (", table.columns, ") SELECT ", table.columns,
        " FROM ", stored_, ".", table.name, " WHERE ",
        absl::StrReplaceAll(table.visible, {{"$visible", visible}, {"$store", stored_}}), ";");
  }
  return Execute(absl::StrCat(sql, "COMMIT; PRAGMA query_only = ON; DETACH ", stored_));
}

std::string SqlGate::SelectOf(const SqlView& view) const {
  const std::string columns =
      absl::StrJoin(view.columns, ", ", [](std::string* out, const SqlColumn& column) {
        absl::StrAppend(out, column.expression, " AS ", column.name);
      });
  std::vector<std::pair<std::string, std::string>> names;
  for (const StoredTable& table : StoredTables()) {
    names.emplace_back(absl::StrCat("$", table.name), CopyOf(table));
  }
  std::vector<std::string> rows;
  for (const SqlView& of : SqlViews()) {
    for (const SqlColumn& column : of.columns) {
      rows.push_back(absl::StrCat("(", SqlQuoted(of.name), ", ", SqlQuoted(column.name), ", ",
                                  SqlQuoted(column.type), ", ", SqlQuoted(column.meaning), ")"));
    }
  }
  names.emplace_back("$columns", absl::StrCat("(VALUES ", absl::StrJoin(rows, ", "), ")"));
  return absl::StrCat("SELECT ", columns, " FROM ", absl::StrReplaceAll(view.from, names));
}

absl::Status SqlGate::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return absl::OkStatus();
  const absl::Status error = Error(code);
  if (!absl::IsInvalidArgument(error)) return error;
  return absl::InternalError(absl::StrCat("cannot prepare the views: ", sqlite3_errmsg(db_)));
}

int SqlGate::Authorize(void* self, int action, const char* first, const char* second,
                       const char* database, const char* context) {
  const auto view = [](const char* text) { return absl::NullSafeStringView(text); };
  auto* gate = static_cast<SqlGate*>(self);
  const bool admitted =
      gate->Admits(action, view(first), view(second), view(database), view(context));
  return admitted ? SQLITE_OK : SQLITE_DENY;
}

bool SqlGate::Admits(int action, absl::string_view first, absl::string_view second,
                     absl::string_view database, absl::string_view context) {
  if (!is_statement_) return true;
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return true;
    case SQLITE_FUNCTION:
      if (IsSqlFunction(second) || absl::StartsWith(context, hidden_)) return true;
      refused_ = absl::StrCat("no such function: ", second);
      return false;
    case SQLITE_READ:
      if (AdmitsRead(first, database, context)) return true;
      refused_ = absl::StrCat("no such table: ", first);
      return false;
    default:
      refused_ = "only SELECT is possible";
      return false;
  }
}

bool SqlGate::AdmitsRead(absl::string_view table, absl::string_view database,
                         absl::string_view context) {
  if (absl::StartsWith(table, hidden_) || absl::StartsWith(context, hidden_)) {
    copies_.insert(std::string(table));
    return true;
  }
  const SqlView* view = FindSqlView(table);
  // SQLite may name the database of another table for an alias in GROUP BY. The tables of the store
  // that have the name of a view must not be taken for it.
  if (!database.empty()) return view != nullptr && (view->from == nullptr || database == "temp");
  // The name of something of which no column is read, as the statement has it: of a view, or of a
  // WITH clause. A WITH clause with the name of a table can't be told from the table.
  return view != nullptr || tables_.count(absl::AsciiStrToLower(table)) == 0;
}

absl::Status SqlGate::Error(int code) const {
  if (!refused_.empty()) return absl::InvalidArgumentError(refused_);
  std::string message = sqlite3_errmsg(db_);
  absl::StrAppend(&message, AtMost(message));
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(
          absl::StrCat("it needs more than ", kMaxSqlHeapBytes / 1'000'000, " MB of memory"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_IOERR:
      return absl::DataLossError(absl::StrCat("database: ", message));
    case SQLITE_BUSY:
      return absl::UnavailableError("the database is busy");
    default:
      break;
  }
  const int offset = sqlite3_error_offset(db_);
  if (offset < 0) return absl::InvalidArgumentError(message);
  const absl::string_view before =
      absl::string_view(query_.statement).substr(0, static_cast<size_t>(offset));
  const size_t line_begin = before.rfind('\n') + 1;  // 0 on the first line
  return absl::InvalidArgumentError(absl::StrCat(message, " in line ",
                                                 1 + std::count(before.begin(), before.end(), '\n'),
                                                 ", column ", 1 + before.size() - line_begin));
}

absl::Status SqlGate::CheckOnly(const char* rest) {
  while (*rest != '\0') {
    sqlite3_stmt* another = nullptr;
    const int code = sqlite3_prepare_v2(db_, rest, -1, &another, &rest);
    sqlite3_finalize(another);
    if (code != SQLITE_OK || another != nullptr) {
      return absl::InvalidArgumentError("there is more than one statement");
    }
  }
  return absl::OkStatus();
}

absl::Status SqlGate::Prepare() {
  const std::string& text = query_.statement;
  if (text.size() > kMaxSqlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", text.size(), " bytes, more than ", kMaxSqlBytes));
  }
  if (text.find('\0') != std::string::npos || !text::IsUtf8(text)) {
    return absl::InvalidArgumentError("it isn't text in UTF-8 without NUL characters");
  }
  is_statement_ = true;
  source_->is_read = false;
  sqlite3_finalize(std::exchange(statement_, nullptr));
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(db_, text.c_str(), -1, &statement_, &rest);
  if (code != SQLITE_OK) return Error(code);
  if (statement_ == nullptr) return absl::InvalidArgumentError("it is empty");
  if (sqlite3_stmt_isexplain(statement_) != 0 || sqlite3_stmt_readonly(statement_) == 0 ||
      sqlite3_column_count(statement_) == 0) {
    return absl::InvalidArgumentError("only SELECT is possible");
  }
  if (sqlite3_bind_parameter_count(statement_) != 0) {
    return absl::InvalidArgumentError("it has a parameter, such as ?, without a value");
  }
  return CheckOnly(rest);
}

SqlValue SqlGate::ValueOf(int column) const {
  const auto bytes = [&](const void* data) {
    return absl::string_view(static_cast<const char*>(data),
                             static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  };
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement_, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement_, column);
    case SQLITE_TEXT: {
      const absl::string_view text = bytes(sqlite3_column_text(statement_, column));
      if (text::IsUtf8(text)) return text;
      return SqlBlob{text};
    }
    case SQLITE_BLOB:
      return SqlBlob{bytes(sqlite3_column_blob(statement_, column))};
    default:
      return std::monostate();
  }
}

absl::Status SqlGate::Run(SqlSink* sink) {
  const int count = sqlite3_column_count(statement_);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(absl::NullSafeStringView(sqlite3_column_name(statement_, i)));
  }
  RETURN_IF_ERROR(sink->Columns(names));
  std::vector<SqlValue> values(names.size());
  int code = sqlite3_step(statement_);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement_)) {
    for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = ValueOf(i);
    if (absl::Status taken = sink->Row(values); !taken.ok()) return taken;
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Error(code);
}

}  // namespace

absl::Status AnswerSql(const SqlQuery& query, void (*opened)(), SqlSink* sink) {
  // Before the first connection, which would switch off the accounts that the limit needs.
  sqlite3_initialize();
  sqlite3_hard_heap_limit64(kMaxSqlHeapBytes);
  SqlGate gate(query);
  RETURN_IF_ERROR(gate.Open());
  if (opened != nullptr) opened();
  RETURN_IF_ERROR(gate.Prepare());
  RETURN_IF_ERROR(gate.CopyRows());
  RETURN_IF_ERROR(gate.Prepare());
  return gate.Run(sink);
}

}  // namespace ablate::storage
