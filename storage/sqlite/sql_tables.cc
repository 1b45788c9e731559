#include "storage/sqlite/sql_tables.h"

#include <sqlite3.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/series.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {
namespace {

// Columns that a table's reader gave by `column = value`.
constexpr int kRunGiven = 1, kKeyGiven = 2;

struct SqlTable : sqlite3_vtab {
  sqlite3* db = nullptr;
  SqlTableSource* source = nullptr;
};

// Values that a cursor is opened with.
struct SqlCursorRange {
  std::optional<std::string> run, key;
};

void ResultText(sqlite3_context* context, const std::string& text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// Reads the names of runs that the user may see: of all, or of one. What a statement tells by its
// time doesn't depend on other runs.
class VisibleRuns {
 public:
  explicit VisibleRuns(const SqlTable& table) : table_(table) {}
  ~VisibleRuns() { sqlite3_finalize(statement_); }
  VisibleRuns(const VisibleRuns&) = delete;
  VisibleRuns& operator=(const VisibleRuns&) = delete;

  absl::Status Open(const std::optional<std::string>& run) {
    sqlite3_finalize(std::exchange(statement_, nullptr));
    const std::string sql = absl::StrCat("SELECT run FROM temp.", table_.source->runs,
                                         run.has_value() ? " WHERE run = ?1" : "");
    int code = sqlite3_prepare_v2(table_.db, sql.c_str(), -1, &statement_, nullptr);
    if (code == SQLITE_OK && run.has_value()) {
      code = sqlite3_bind_text64(statement_, 1, run->data(), run->size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8);
    }
    return code == SQLITE_OK ? absl::OkStatus() : absl::InternalError(sqlite3_errstr(code));
  }
  // Returns the next name; nothing at the end.
  absl::StatusOr<std::optional<std::string>> Next() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_DONE) return std::nullopt;
    if (code != SQLITE_ROW) return absl::InternalError(sqlite3_errstr(code));
    return reinterpret_cast<const char*>(sqlite3_column_text(statement_, 0));
  }

 private:
  const SqlTable& table_;
  sqlite3_stmt* statement_ = nullptr;
};

// The tables have no rowid, because SQLite would name their database to the authorizer for an alias
// in GROUP BY of another table. Cursors have Open, Next, End, at_end and Result; Open and Next move
// to a row or to the end.
class MetricsCursor : public sqlite3_vtab_cursor {
 public:
  static constexpr const char* kDeclaration =
      "CREATE TABLE metrics (run TEXT, key TEXT, points INTEGER, nonfinite INTEGER, first REAL, "
      "last REAL, min REAL, max REAL, mean REAL, last_step INTEGER, PRIMARY KEY (run, key)) "
      "WITHOUT ROWID";
  static constexpr int kRunColumn = 0, kKeyColumn = 1;
  static constexpr bool kIsFunction = false;

  explicit MetricsCursor(const SqlTable& table)
      : sqlite3_vtab_cursor{}, db_(table.source->db), runs_(table) {}

  absl::Status Open(SqlCursorRange range) {
    key_ = std::move(range.key);
    at_end_ = false;
    summaries_.clear();
    place_ = 0;
    RETURN_IF_ERROR(runs_.Open(range.run));
    return Settle();
  }
  void End() { at_end_ = true; }
  absl::Status Next() {
    ++place_;
    return Settle();
  }
  bool at_end() const { return at_end_; }

  void Result(sqlite3_context* context, int column) const {
    const Summary& summary = summaries_[place_].summary;
    const bool finite = summary.count > summary.nonfinite;
    const double numbers[] = {summary.first, summary.last, summary.min, summary.max, summary.mean};
    switch (column) {
      case 0:
        return ResultText(context, run_);
      case 1:
        return ResultText(context, summary.key);
      case 2:
        return sqlite3_result_int64(context, static_cast<sqlite3_int64>(summary.count));
      case 3:
        return sqlite3_result_int64(context, static_cast<sqlite3_int64>(summary.nonfinite));
      case 9:
        return sqlite3_result_int64(context, summaries_[place_].last_step);
      default:
        return finite && std::isfinite(numbers[column - 4])
                   ? sqlite3_result_double(context, numbers[column - 4])
                   : sqlite3_result_null(context);
    }
  }

 private:
  // Moves on to the next wanted row, from `place_` on.
  absl::Status Settle() {
    for (;; ++place_) {
      while (place_ >= summaries_.size()) {
        ASSIGN_OR_RETURN(auto run, runs_.Next());
        at_end_ = !run.has_value();
        if (at_end_) return db_.error();
        run_ = *std::move(run);
        Statement row(db_, "SELECT data FROM summaries JOIN runs ON run = runs.id WHERE name = ?1",
                      run_);
        if (!row.Row()) continue;
        auto decoded = DecodeSummaries(run_, row.View(0));
        if (!decoded.ok()) return DamagedSummaries(run_, decoded.status());
        summaries_ = *std::move(decoded);
        place_ = 0;
      }
      if (!key_.has_value() || summaries_[place_].summary.key == *key_) return absl::OkStatus();
    }
  }

  Connection& db_;
  VisibleRuns runs_;
  std::optional<std::string> key_;
  bool at_end_ = true;
  std::string run_;
  KeySummaries summaries_;
  size_t place_ = 0;
};

class PointsCursor : public sqlite3_vtab_cursor {
 public:
  static constexpr const char* kDeclaration =
      "CREATE TABLE points (step INTEGER, value REAL, run TEXT HIDDEN, key TEXT HIDDEN, PRIMARY "
      "KEY (run, key, step)) WITHOUT ROWID";
  static constexpr int kRunColumn = 2, kKeyColumn = 3;
  static constexpr bool kIsFunction = true;

  explicit PointsCursor(const SqlTable& table)
      : sqlite3_vtab_cursor{}, db_(table.source->db), runs_(table) {}

  absl::Status Open(SqlCursorRange range) {
    query_ = {*range.run, *range.key};
    page_ = SeriesPage();
    place_ = 0;
    RETURN_IF_ERROR(runs_.Open(query_.run));
    ASSIGN_OR_RETURN(const auto run, runs_.Next());
    if (!run.has_value()) return NotFound("run", query_.run);
    return Settle();
  }
  void End() { page_ = SeriesPage(); }
  absl::Status Next() {
    ++place_;
    return Settle();
  }
  bool at_end() const { return place_ >= page_.steps.size(); }

  void Result(sqlite3_context* context, int column) const {
    switch (column) {
      case 0:
        return sqlite3_result_int64(context, page_.steps[place_]);
      case 1:
        return sqlite3_result_double(context, page_.values[place_]);
      case kRunColumn:
        return ResultText(context, query_.run);
      default:
        return ResultText(context, query_.key);
    }
  }

 private:
  absl::Status Settle() {
    while (at_end() && !page_.at_end) {
      place_ = 0;
      if (absl::Status read = ReadPage(db_, query_, &page_); !read.ok()) return read;
    }
    return db_.error();
  }

  Connection& db_;
  VisibleRuns runs_;
  SeriesQuery query_;
  SeriesPage page_;
  size_t place_ = 0;
};

// Makes SQLite's functions of a virtual table.
template <class Cursor>
struct SqlModule {
  static int Connect(sqlite3* db, void* source, int, const char* const*, sqlite3_vtab** table,
                     char**) {
    const int code = sqlite3_declare_vtab(db, Cursor::kDeclaration);
    if (code != SQLITE_OK) return code;
    auto made = std::make_unique<SqlTable>();
    made->db = db;
    made->source = static_cast<SqlTableSource*>(source);
    *table = made.release();
    return SQLITE_OK;
  }
  static int Disconnect(sqlite3_vtab* table) {
    delete static_cast<SqlTable*>(table);
    return SQLITE_OK;
  }
  static int Open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
    *cursor = new Cursor(*static_cast<SqlTable*>(table));
    return SQLITE_OK;
  }
  static int Close(sqlite3_vtab_cursor* cursor) {
    delete static_cast<Cursor*>(cursor);
    return SQLITE_OK;
  }

  static int BestIndex(sqlite3_vtab* table, sqlite3_index_info* info) {
    static_cast<SqlTable*>(table)->source->is_read = true;
    int run = -1, key = -1;
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& constraint = info->aConstraint[i];
      if (constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
      const bool of_run = constraint.iColumn == Cursor::kRunColumn;
      if (!of_run && constraint.iColumn != Cursor::kKeyColumn) continue;
      if (constraint.usable == 0) {
        // An argument of a function comes from a table to the left.
        if (Cursor::kIsFunction) return SQLITE_CONSTRAINT;
        continue;
      }
      if (absl::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") continue;
      (of_run ? run : key) = i;
    }
    int arguments = 0;
    for (const int i : {run, key}) {
      if (i < 0) continue;
      info->aConstraintUsage[i].argvIndex = ++arguments;
      info->aConstraintUsage[i].omit = Cursor::kIsFunction;
    }
    info->idxNum = (run < 0 ? 0 : kRunGiven) | (key < 0 ? 0 : kKeyGiven);
    info->estimatedCost = run < 0 ? 1e7 : 100;
    info->estimatedRows = run < 0 ? 1'000'000 : key < 0 || Cursor::kIsFunction ? 100 : 1;
    return SQLITE_OK;
  }

  static int Filter(sqlite3_vtab_cursor* cursor, int given, const char*, int count,
                    sqlite3_value** values) {
    if (Cursor::kIsFunction && given != (kRunGiven | kKeyGiven)) {
      return Fail(cursor, absl::InvalidArgumentError(
                              "points has two arguments, points(run, key), and comes after the "
                              "view that has them"));
    }
    SqlCursorRange range;
    for (int i = 0; i < count; ++i) {
      if (sqlite3_value_type(values[i]) == SQLITE_NULL) {  // it equals nothing
        static_cast<Cursor*>(cursor)->End();
        return SQLITE_OK;
      }
      const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
      const auto size = static_cast<size_t>(sqlite3_value_bytes(values[i]));
      auto& name = (given & kRunGiven) != 0 && i == 0 ? range.run : range.key;
      name.emplace(text == nullptr ? "" : std::string(text, size));
    }
    return Fail(cursor, static_cast<Cursor*>(cursor)->Open(std::move(range)));
  }
  static int Next(sqlite3_vtab_cursor* cursor) {
    return Fail(cursor, static_cast<Cursor*>(cursor)->Next());
  }
  static int AtEnd(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor)->at_end(); }
  static int Column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int column) {
    static_cast<Cursor*>(cursor)->Result(context, column);
    return SQLITE_OK;
  }

  // Reports an error, if there is one.
  static int Fail(sqlite3_vtab_cursor* cursor, const absl::Status& status) {
    if (status.ok()) return SQLITE_OK;
    sqlite3_free(cursor->pVtab->zErrMsg);
    const std::string message(status.message());
    cursor->pVtab->zErrMsg = sqlite3_mprintf("%s", message.c_str());
    return absl::IsDataLoss(status) ? SQLITE_CORRUPT_VTAB : SQLITE_ERROR;
  }

  // Without xCreate the table exists by itself, and no other of its kind can be made.
  static const sqlite3_module* Get() {
    static const sqlite3_module module = [] {
      sqlite3_module made{};
      made.xConnect = Connect;
      made.xBestIndex = BestIndex;
      made.xDisconnect = Disconnect;
      made.xOpen = Open;
      made.xClose = Close;
      made.xFilter = Filter;
      made.xNext = Next;
      made.xEof = AtEnd;
      made.xColumn = Column;
      return made;
    }();
    return &module;
  }
};

}  // namespace

int AddSqlTables(sqlite3* db, SqlTableSource* source) {
  const int code = sqlite3_create_module(db, "metrics", SqlModule<MetricsCursor>::Get(), source);
  if (code != SQLITE_OK) return code;
  return sqlite3_create_module(db, "points", SqlModule<PointsCursor>::Get(), source);
}

}  // namespace ablate::storage
