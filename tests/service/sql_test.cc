// Tests SQL statements of clients: hostile ones, their limits, and the process that answers each.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/lookup/limits.h"
#include "server/sql/child.h"
#include "storage/sqlite/connection.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Statements = std::vector<std::string>;
using Code = grpc::StatusCode;

// Counts for as long as it may.
constexpr char kEndless[] =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
// Has many rows, each of them large.
constexpr char kManyRows[] =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60) SELECT "
    "printf('%900000d', x) FROM c";

// Returns the processes that answer statements of this process's server.
std::vector<pid_t> SqlChildren() {
  std::vector<pid_t> children;
  DIR* const processes = opendir("/proc");
  while (const dirent* entry = readdir(processes)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    std::string line;
    std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/stat")), line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    const std::vector<std::string> fields = absl::StrSplit(line.substr(name_end + 2), ' ');
    std::string command;
    std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/cmdline")), command);
    const bool is_child = fields[1] == absl::StrCat(getpid()) && fields[0] != "Z";
    if (is_child && absl::StrContains(command, sql::kSqlChild)) children.push_back(pid);
  }
  closedir(processes);
  return children;
}

void AwaitChildren(size_t number) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (SqlChildren().size() != number && absl::Now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_THAT(SqlChildren(), SizeIs(number));
}

std::string TextOf(const v1::SqlValue& value) {
  if (value.has_integer()) return absl::StrCat(value.integer());
  if (value.has_real()) return absl::StrCat(value.real());
  return value.has_text() ? value.text() : value.has_blob() ? "blob" : "NULL";
}

class SqlTest : public ServiceTest {
 protected:
  static v1::SqlRequest Request(const std::string& statement) {
    v1::SqlRequest request;
    request.set_statement(statement);
    return request;
  }
  grpc::Status Ask(const std::string& statement, std::vector<std::string>* rows = nullptr) {
    Context context;
    std::vector<v1::SqlRows> parts;
    const grpc::Status status = ReadAll(metrics_->Sql(&context, Request(statement)).get(), &parts);
    for (const v1::SqlRows& part : parts) {
      for (const v1::SqlRow& row : part.rows()) {
        if (rows == nullptr) continue;
        rows->push_back(absl::StrJoin(row.values(), " ", [](std::string* out, const auto& value) {
          out->append(TextOf(value));
        }));
      }
    }
    return status;
  }
  std::vector<std::string> RowsOf(const std::string& statement) {
    std::vector<std::string> rows;
    const grpc::Status status = Ask(statement, &rows);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return rows;
  }
  // Expects that each statement ends with one of these codes.
  void ExpectCodes(const Statements& statements, const std::set<Code>& codes) {
    for (const std::string& statement : statements) {
      const grpc::Status status = Ask(statement);
      EXPECT_TRUE(codes.count(status.error_code()) > 0)
          << statement.substr(0, 300) << ": " << status.error_code() << " "
          << status.error_message();
    }
  }
  std::vector<std::string> Tables() {
    const auto db = storage::Connection::OpenFile(folder() + "/ablate.db",
                                                  storage::Connection::Access::kReadOnly);
    std::vector<std::string> tables;
    storage::Statement row(**db, "SELECT name FROM sqlite_schema WHERE type = 'table'");
    while (row.Row()) tables.push_back(row.Text(0));
    return tables;
  }
};

// Returns each form with each value in place of $.
void AddForms(const Statements& forms, const Statements& values, Statements* statements) {
  for (const std::string& value : values) {
    for (const std::string& form : forms) {
      statements->push_back(absl::StrReplaceAll(form, {{"$", value}}));
    }
  }
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

Statements Writes() {
  Statements statements;
  AddForms({"DELETE FROM $",
            "DELETE FROM main.$ RETURNING *",
            "DROP VIEW $",
            "DROP TABLE main.$",
            "UPDATE $ SET state = 1",
            "UPDATE OR REPLACE main.$ SET name = 'x'",
            "INSERT INTO $ DEFAULT VALUES",
            "REPLACE INTO main.$ VALUES (1)",
            "INSERT INTO temp.$ SELECT * FROM $",
            "ALTER TABLE $ RENAME TO x",
            "ALTER TABLE main.$ ADD COLUMN x",
            "CREATE INDEX i ON $ (run)",
            "CREATE TRIGGER t AFTER INSERT ON $ BEGIN SELECT 1; END",
            "CREATE TEMP TRIGGER t INSTEAD OF INSERT ON $ BEGIN SELECT 1; END",
            "WITH x AS (SELECT 1) DELETE FROM $",
            "CREATE TABLE x AS SELECT * FROM $",
            "CREATE TEMP TABLE $ (x)",
            "CREATE TEMP VIEW v AS SELECT * FROM $",
            "ANALYZE $",
            "REINDEX $"},
           {"experiments", "cells", "runs", "settings", "metrics", "analyses", "sqlite_master"},
           &statements);
  return statements;
}

Statements Pragmas() {
  Statements statements;
  AddForms({"PRAGMA $", "PRAGMA $ = 1", "PRAGMA main.$", "SELECT * FROM pragma_$",
            "SELECT * FROM pragma_$('runs')"},
           {"application_id",       "cache_size",
            "collation_list",       "compile_options",
            "data_version",         "database_list",
            "defer_foreign_keys",   "encoding",
            "foreign_key_list",     "freelist_count",
            "function_list",        "hard_heap_limit",
            "index_info",           "index_list",
            "integrity_check",      "journal_mode",
            "journal_size_limit",   "legacy_alter_table",
            "locking_mode",         "mmap_size",
            "module_list",          "optimize",
            "page_count",           "pragma_list",
            "query_only",           "quick_check",
            "recursive_triggers",   "schema_version",
            "secure_delete",        "shrink_memory",
            "soft_heap_limit",      "synchronous",
            "table_info",           "table_list",
            "table_xinfo",          "temp_store",
            "temp_store_directory", "threads",
            "trusted_schema",       "user_version",
            "wal_autocheckpoint",   "wal_checkpoint",
            "writable_schema"},
           &statements);
  return statements;
}

Statements Functions() {
  Statements statements;
  AddForms({"SELECT $", "SELECT run FROM runs WHERE $", "WITH x AS (SELECT $) SELECT * FROM x"},
           {"load_extension('/lib/x.so')",
            "load_extension('x', 'entry')",
            "readfile('/etc/passwd')",
            "writefile('/tmp/x', 'y')",
            "edit('x')",
            "fts3_tokenizer('simple')",
            "fts5(1)",
            "zeroblob(1000000000)",
            "randomblob(1000000000)",
            "random()",
            "sqlite_version()",
            "sqlite_source_id()",
            "sqlite_compileoption_get(1)",
            "changes()",
            "total_changes()",
            "last_insert_rowid()",
            "likelihood(1, 0.5)",
            "unlikely(1)",
            "json('[1]')",
            "json_extract('{}', '$.x')",
            "rtreecheck('runs')",
            "sqlite_log(1, 'x')",
            "snippet(runs)",
            "matchinfo(runs)",
            "optimize(runs)",
            "offsets(runs)",
            "regexp('a', 'b')",
            "match('a', 'b')",
            "'a' REGEXP 'b'",
            "'a' MATCH 'b'",
            "utc(1)",
            "number('1')",
            "analysis_kind(x'00')",
            "sqlite_offset(1)",
            "subtype(1)",
            "sha1('x')",
            "current_user",
            "max(1, 2, 3, 4, 5, 6, 7, 8, 9)"},
           &statements);
  return statements;
}

Statements OtherCommands() {
  return {"ATTACH '/etc/passwd' AS x",
          "ATTACH ':memory:' AS x",
          "ATTACH 'file:/tmp/x?mode=rwc' AS x",
          "ATTACH DATABASE 'access.db' AS x",
          "DETACH main",
          "VACUUM",
          "VACUUM INTO '/tmp/x'",
          "BEGIN",
          "BEGIN EXCLUSIVE",
          "COMMIT",
          "ROLLBACK",
          "SAVEPOINT s",
          "RELEASE s",
          "EXPLAIN SELECT 1",
          "EXPLAIN QUERY PLAN SELECT * FROM runs",
          "CREATE VIRTUAL TABLE x USING fts5(y)",
          "CREATE VIRTUAL TABLE temp.x USING rtree(a, b, c)",
          "CREATE VIRTUAL TABLE x USING dbstat",
          "CREATE TABLE x (y)",
          "SELECT * FROM dbstat",
          "SELECT * FROM sqlite_stmt",
          "SELECT * FROM sqlite_dbpage",
          "SELECT * FROM json_each('[1]')",
          "SELECT * FROM json_tree('[1]')",
          "SELECT * FROM bytecode('SELECT 1')",
          "SELECT * FROM tables_used('SELECT 1')",
          "SELECT * FROM generate_series(1, 10)",
          "SELECT * FROM fts3tokenize('simple')",
          "SELECT * FROM points",
          "SELECT * FROM points('x')",
          "SELECT * FROM points('x', 'y', 'z')",
          "SELECT * FROM access.tokens",
          "SELECT * FROM users",
          "SELECT * FROM tokens",
          "SELECT 1; SELECT 2",
          "SELECT 1; DROP TABLE main.runs",
          "SELECT 1;; PRAGMA query_only = OFF",
          ";",
          "--",
          "/* unfinished",
          "SELECT ?",
          "SELECT :x, @y, $z",
          "SELECT ?99999",
          "SELECT 'unfinished",
          "SELECT \"unfinished",
          "SELECT x'abc'",
          "\xEF\xBB\xBF",
          "SELECT * FROM runs INDEXED BY runs_queue",
          "SELECT run COLLATE nothing FROM runs",
          "SELECT 1 LIMIT 1 OFFSET (SELECT rowid FROM main.runs)",
          "SELECT rowid FROM temp.sqlite_schema",
          "VALUES ((SELECT sql FROM sqlite_schema))"};
}

// Statements beyond a limit of SQLite.
Statements Large() {
  Statements statements = {
      "SELECT " + Repeated("1,", 100) + "1",
      "SELECT " + Repeated("(", 60) + "1" + Repeated(")", 60) + Repeated("+1", 60),
      "SELECT " + Repeated("(", 2000) + "1" + Repeated(")", 2000),
      "SELECT " + Repeated("NOT ", 5000) + "1",
      "SELECT " + Repeated("-", 20'000) + " 1",
      "SELECT 1" + Repeated("+1", 5000),
      "SELECT 1" + Repeated(" UNION SELECT 1", 20),
      Repeated("SELECT * FROM (", 500) + "SELECT 1" + Repeated(")", 500),
      "SELECT * FROM runs a" + Repeated(", runs", 70),
      "SELECT 'x' LIKE '" + Repeated("%a", 60) + "'",
      "SELECT 'x' GLOB '" + Repeated("*a", 60) + "'",
      "SELECT replace(printf('%900000d', 1), ' ', 'xxxxxxxxxx')",
      "SELECT group_concat(printf('%900000d', step)) FROM (SELECT 1 AS step UNION SELECT 2)",
      "SELECT printf('%900000d', 1) || printf('%900000d', 1)",
      "SELECT hex(printf('%900000d', 1))",
      "SELECT quote(printf('%999990d''', 1)) || 'xxxxxxxxxxxxx'",
      Repeated(" ", 65'000) + "SELECT 1",
      "SELECT '" + std::string(1'000'000, 'x') + "'",
  };
  return statements;
}

// Statements that need much time and have an end or none.
Statements Slow() {
  const std::string endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) ";
  const std::string long_text = "printf('%999000d', 1)";
  return {
      kEndless,
      endless + "SELECT x FROM c WHERE x < 0",
      endless + "SELECT max(x) FROM c",
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT * FROM c WHERE x = 2",
      "WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT count(*) "
      "FROM c a, c b, c d, c e",
      "SELECT sum(instr(" + long_text + ", printf('%400000d', 1) || x)) FROM (" + endless +
          "SELECT x FROM c LIMIT 100)",
      "SELECT count(*) FROM columns a, columns b, columns c, columns d, columns e",
      "SELECT sum(length(replace(" + long_text + ", ' ', x % 10))) FROM (" + endless +
          "SELECT x FROM c LIMIT 10000)",
  };
}

TEST_F(SqlTest, AnswersAStatement) {
  const std::string experiment = Create(SmallSpec(2)).experiment().name();
  EXPECT_THAT(RowsOf("SELECT name, owner, state, cells, queued FROM experiments"),
              ElementsAre("small ada ACTIVE 4 4"));
  EXPECT_THAT(
      RowsOf("SELECT value, count(*) FROM settings WHERE name = 'placement' GROUP BY value"),
      ElementsAre("post 2", "pre 2"));
  EXPECT_THAT(RowsOf("SELECT value, number FROM settings WHERE name = 'model.layers' LIMIT 1"),
              ElementsAre("1 1"));
  EXPECT_THAT(RowsOf("SELECT 1, 2.5, 'x', x'00', NULL"), ElementsAre("1 2.5 x blob NULL"));
  Context context;
  std::vector<v1::SqlRows> parts;
  EXPECT_TRUE(
      ReadAll(metrics_->Sql(&context, Request("SELECT run AS r FROM runs LIMIT 0")).get(), &parts)
          .ok());
  EXPECT_THAT(parts.at(0).columns(), ElementsAre("r"));
  AwaitChildren(0);
}

TEST_F(SqlTest, NamesTheProblemAndTheField) {
  const grpc::Status status = Ask("SELECT lr FROM runs");
  EXPECT_EQ(status.error_code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "statement: no such column: lr in line 1, column 8; expected one SELECT over the views "
            "that `ablate sql --schema` lists (docs/reference/sql.md)");
  EXPECT_EQ(FieldOf(status), "statement");
}

TEST_F(SqlTest, SuggestsTheNearestNameWhenOneIsUnknown) {
  const auto suggests = [](const std::string& name) {
    return HasSubstr("; did you mean " + name + "?; expected one SELECT");
  };
  EXPECT_THAT(Ask("SELECT * FROM runz").error_message(), suggests("runs"));
  EXPECT_THAT(Ask("SELECT * FROM point('a', 'b')").error_message(), suggests("points"));
  EXPECT_THAT(Ask("SELECT 1,\n r.stat FROM runs AS r").error_message(), suggests("state"));
  EXPECT_THAT(Ask("SELECT coun(*) FROM runs").error_message(), suggests("count"));
  EXPECT_THAT(Ask("SELECT * FROM main.runs").error_message(),
              suggests("runs, without main. before it"));
  EXPECT_THAT(Ask("SELECT main.runs.seed FROM runs").error_message(),
              suggests("seed, without main. before it"));
  EXPECT_THAT(Ask("SELECT e.seed FROM experiments AS e").error_message(),
              Not(HasSubstr("did you mean")))
      << "a column of another view";
}

TEST_F(SqlTest, RefusesHostileStatements) {
  Create(SmallSpec());
  const std::vector<std::string> before = RowsOf("SELECT * FROM runs ORDER BY run");
  Statements statements = Writes();
  for (const Statements& more : {Pragmas(), Functions(), OtherCommands(), Large()}) {
    statements.insert(statements.end(), more.begin(), more.end());
  }
  AddForms({"SELECT * FROM main.$", "WITH runs AS (SELECT * FROM main.$) SELECT * FROM runs"},
           Tables(), &statements);
  const std::set<std::string> different(statements.begin(), statements.end());
  EXPECT_GE(different.size(), 500u);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Statements half;
      for (size_t j = i; j < statements.size(); j += 2) half.push_back(statements[j]);
      ExpectCodes(half, {Code::INVALID_ARGUMENT});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(RowsOf("SELECT * FROM runs ORDER BY run"), before);
  AwaitChildren(0);
}

TEST_F(SqlTest, EndsSlowStatements) {
  for (const std::string& statement : Slow()) {
    const grpc::Status status = Ask(statement);
    EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED) << statement;
    EXPECT_EQ(ReasonOf(status), "SQL_LIMIT") << status.error_message();
  }
  ExpectCodes({"SELECT printf('%1000001d', 1)", "SELECT printf('%.*c', 2000000000, 'x')"},
              {Code::OK, Code::INVALID_ARGUMENT, Code::RESOURCE_EXHAUSTED});
  AwaitChildren(0);
  // SQLite doesn't try every way to match such patterns.
  for (const std::string& pattern :
       {"LIKE '" + Repeated("% ", 40), "GLOB '" + Repeated("* ", 40)}) {
    EXPECT_THAT(RowsOf("SELECT printf('%999000d', 1) " + pattern + "x'"), ElementsAre("0"));
  }
}

TEST_F(SqlTest, BoundsMemory) {
  const grpc::Status status =
      Ask("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400) SELECT "
          "printf('%900000d', x) AS t FROM c ORDER BY t DESC");
  EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(status.error_message(), "statement: it needs more than 256 MB of memory");
}

TEST_F(SqlTest, BoundsResults) {
  sql_processor_time_ = absl::Seconds(60);  // a sanitizer takes more than one
  Restart();
  std::vector<std::string> rows;
  const grpc::Status status = Ask(absl::StrReplaceAll(kManyRows, {{"60", "90"}}), &rows);
  EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("the result has more than 64000000 bytes"));
  EXPECT_EQ(rows.size(), 71u) << "what was read before the limit arrives";
  const grpc::Status wide = Ask("SELECT printf('%600000d', 1), printf('%600000d', 2)");
  EXPECT_THAT(wide.error_message(), HasSubstr("a row has more than 1000000 bytes"));
  EXPECT_EQ(RowsOf(kManyRows).size(), 60u);
}

TEST_F(SqlTest, GoesOnIfAChildIsKilled) {
  Context context;
  const auto reader = metrics_->Sql(&context, Request(kEndless));
  AwaitChildren(1);
  kill(SqlChildren().at(0), SIGKILL);
  std::vector<v1::SqlRows> parts;
  const grpc::Status status = ReadAll(reader.get(), &parts);
  EXPECT_EQ(status.error_code(), Code::INTERNAL);
  EXPECT_EQ(status.error_message(), "the process that answers the statement was ended by signal 9");
  EXPECT_THAT(RowsOf("SELECT 1"), ElementsAre("1"));
}

TEST_F(SqlTest, EndsTheChildOfACancelledCall) {
  Context context;
  const auto reader = metrics_->Sql(&context, Request(kEndless));
  AwaitChildren(1);
  context.TryCancel();
  AwaitChildren(0);
  std::vector<v1::SqlRows> parts;
  EXPECT_EQ(ReadAll(reader.get(), &parts).error_code(), Code::CANCELLED);
}

TEST_F(SqlTest, EndsChildrenWithTheServer) {
  Context context;
  const auto reader = metrics_->Sql(&context, Request(kEndless));
  AwaitChildren(1);
  StopClients();
  AwaitChildren(0);
  std::vector<v1::SqlRows> parts;
  EXPECT_EQ(ReadAll(reader.get(), &parts).error_code(), Code::UNAVAILABLE);
}

TEST_F(SqlTest, AnswersSomeAtOnce) {
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SqlRows>>> readers;
  for (size_t i = 1; i <= lookup::kMaxStatements.total; ++i) {
    contexts.push_back(std::make_unique<Context>());
    readers.push_back(metrics_->Sql(contexts.back().get(), Request(kEndless)));
    AwaitChildren(i);
  }
  const grpc::Status status = Ask("SELECT 1");
  EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("SQL statements"));
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) {
    std::vector<v1::SqlRows> parts;
    ReadAll(reader.get(), &parts);
  }
  AwaitChildren(0);
  EXPECT_THAT(RowsOf("SELECT 1"), ElementsAre("1"));
}

// The child waits for the client, and then its time is over, also without a reader.
TEST_F(SqlTest, EndsTheChildOfAClientThatDoesNotRead) {
  Context context;
  const auto reader = metrics_->Sql(&context, Request(kManyRows));
  AwaitChildren(1);
  AwaitChildren(0);
  std::vector<v1::SqlRows> parts;
  const grpc::Status status = ReadAll(reader.get(), &parts);
  EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "statement: it takes longer than 3s, the reading of its rows included");
  EXPECT_LT(parts.size(), 61u);
}

}  // namespace
}  // namespace ablate::service
