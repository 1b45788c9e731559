// Tests SQL statements over the views: what they show, to whom, and what they refuse.
#include "storage/sql_query.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "storage/sqlite/connection.h"
#include "tests/storage/step_meter.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string SqlText(const SqlValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* real = std::get_if<double>(&value)) return absl::StrCat(*real);
  if (const auto* text = std::get_if<absl::string_view>(&value)) return std::string(*text);
  if (std::holds_alternative<SqlBlob>(value)) return "blob";
  return "NULL";
}

// Keeps a result, each row as texts with spaces between them.
struct KeptRows : SqlSink {
  absl::Status Columns(const std::vector<std::string>& names) override {
    columns = names;
    return absl::OkStatus();
  }
  absl::Status Row(const std::vector<SqlValue>& values) override {
    rows.push_back(absl::StrJoin(
        values, " ", [](std::string* out, const SqlValue& value) { out->append(SqlText(value)); }));
    return absl::OkStatus();
  }
  std::vector<std::string> columns;
  std::vector<std::string> rows;
};

class SqlQueryTest : public StoreTest {
 protected:
  SqlQueryTest() {
    NewExperiment open = MakeExperiment({"a", "b"});
    open.name = "open";
    open.owner = "ada";
    open.fields.common = {{"model.layers", "2"}};
    open.fields.of_variant = {{{"model.norm.kind", "rms"}}};
    for (NewCell& cell : open.cells) cell.labels = {{"lr", "1e-3"}};
    open_ = Create(open).id;
    NewExperiment hidden = MakeExperiment({"secretrun"});
    hidden.name = "secret";
    hidden.owner = "bob";
    hidden.private_to = "bob";
    hidden.request_id = "secretrequest";
    hidden.cells[0].name = "secretcell";
    hidden.cells[0].seed = hidden.runs[0].seed = 77;
    hidden.cells[0].labels = {{"secretaxis", "secretlabel"}};
    hidden.fields.common = {{"secretfield", "secretvalue"}};
    hidden.fields.of_variant = {{}};
    hidden_ = Create(hidden).id;
    Lease lease(&store(), "l", {"a", "secretrun"});
    for (const char* run : {"a", "secretrun"}) {
      lease.Send(run, StartedEvent{});
      lease.Send(run, MakePoints(kSteps, {MakeColumn("eval/loss", {0, 50, 100}, {3, HUGE_VAL, 1}),
                                          MakeColumn("train/loss", {0, 1}, {2, 2.5})}));
      lease.Send(run, Checkpoint(kSteps));
      lease.Send(run, FinishedEvent{false, kSteps});
    }
    for (const char* run : {"a", "secretrun"}) {
      NewAnalysis analysis;
      analysis.id = absl::StrCat("of", run);
      analysis.signature = "spectrum";
      analysis.request = "request";
      analysis.subjects = {{run, kSteps}};
      analysis.owner = "ada";
      analysis.private_to = absl::StartsWith(run, "secret") ? "bob" : "";
      analysis.time_group = "g";
      EXPECT_TRUE(store().CreateAnalysis(analysis, kMostOpen).ok());
    }
  }

  absl::Status Ask(const std::string& statement, KeptRows* kept, const Viewer& viewer = {"ada"}) {
    SqlQuery query{folder(), viewer, statement};
    query.analysis_kind = [](absl::string_view request) {
      return absl::StrCat("kind of ", request);
    };
    return AnswerSql(query, nullptr, kept);
  }
  std::vector<std::string> Rows(const std::string& statement, const Viewer& viewer = {"ada"}) {
    KeptRows kept;
    const absl::Status status = Ask(statement, &kept, viewer);
    EXPECT_TRUE(status.ok()) << statement << ": " << status;
    return kept.rows;
  }
  std::string Refusal(const std::string& statement) {
    KeptRows kept;
    const absl::Status status = Ask(statement, &kept);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << statement << ": " << status;
    EXPECT_THAT(kept.rows, IsEmpty());
    EXPECT_FALSE(std::regex_search(std::string(status.message()), std::regex("[0-9a-f]{32}_")))
        << status;
    return std::string(status.message());
  }
  // Returns the tables of the database.
  std::vector<std::string> Tables() {
    return Names("SELECT name FROM sqlite_schema WHERE type = 'table' AND ?1 = ''", "");
  }
  std::vector<std::string> ColumnsOf(const std::string& table) {
    return Names("SELECT name FROM pragma_table_info(?1)", table);
  }
  std::vector<std::string> Names(const char* sql, const std::string& parameter) {
    auto db = Value(Connection::OpenFile(folder() + "/ablate.db", Connection::Access::kReadOnly));
    std::vector<std::string> names;
    Statement row(*db, sql, parameter);
    while (row.Row()) names.push_back(row.Text(0));
    return names;
  }

  std::string open_, hidden_;
};

INSTANTIATE_TEST_SUITE_P(, SqlQueryTest, ::testing::Values(Where::kFile), WhereName);

TEST_P(SqlQueryTest, ShowsExperimentsCellsAndRuns) {
  EXPECT_THAT(
      Rows("SELECT experiment, name, owner, private, state, cells, queued, done, created, ended "
           "FROM experiments"),
      ElementsAre(absl::StrCat(open_, " open ada 0 ACTIVE 2 1 1 2023-11-14T22:13:20.000Z NULL")));
  EXPECT_THAT(Rows("SELECT experiment, cell, place, seed, run, reused FROM cells"),
              ElementsAre(open_ + " c0 0 7 a 0", open_ + " c1 1 7 b 0"));
  EXPECT_THAT(Rows("SELECT run, state, step, steps, private, failure FROM runs ORDER BY run"),
              ElementsAre("a DONE 100 100 0 NULL", "b QUEUED 0 100 0 NULL"));
}

TEST_P(SqlQueryTest, ShowsRunsAsRunningOnceALaneHasBegunThem) {
  const std::string b = "SELECT state FROM runs WHERE run = 'b'";
  const std::string counts = "SELECT queued, running FROM experiments WHERE name = 'open'";
  Lease lease(&store(), "l-shown", {"b"});
  for (const Viewer& viewer : {Viewer{"ada"}, kServer}) {
    EXPECT_THAT(Rows(b, viewer), ElementsAre("QUEUED"));
    EXPECT_THAT(Rows(counts, viewer), ElementsAre("1 0"));
  }
  lease.Send("b", StartedEvent{});
  for (const Viewer& viewer : {Viewer{"ada"}, kServer}) {
    EXPECT_THAT(Rows(b, viewer), ElementsAre("RUNNING"));
    EXPECT_THAT(Rows(counts, viewer), ElementsAre("0 1"));
  }
}

TEST_P(SqlQueryTest, ShowsSettingsWithNumbers) {
  EXPECT_THAT(Rows("SELECT cell, run, kind, name, value, number FROM settings ORDER BY cell, name"),
              ElementsAre("c0 a axis lr 1e-3 0.001", "c0 a field model.layers 2 2",
                          "c0 a field model.norm.kind rms NULL", "c1 b axis lr 1e-3 0.001",
                          "c1 b field model.layers 2 2", "c1 b field model.norm.kind rms NULL"));
}

TEST_P(SqlQueryTest, JoinsSettingsByCellInWorkThatGrowsWithTheCells) {
  StepMeter meter;
  const auto steps_among = [&](int cells) {
    std::vector<std::string> runs;
    for (int i = 0; i < cells; ++i) runs.push_back(absl::StrCat(cells, "run", i));
    NewExperiment experiment = MakeExperiment(runs);
    experiment.fields.common = {{"model.layers", "2"}};
    experiment.fields.of_variant.resize(runs.size());
    const std::string id = Create(experiment).id;
    const std::string statement = absl::StrCat(
        "SELECT a.value, b.value FROM cells AS c JOIN settings AS a ON a.experiment = c.experiment "
        "AND a.cell = c.cell AND a.name = 'norm' JOIN settings AS b ON b.experiment = c.experiment "
        "AND b.cell = c.cell AND b.name = 'lr' WHERE c.experiment = '",
        id, "'");
    return meter.StepsOf([&] { EXPECT_THAT(Rows(statement), SizeIs(cells)); });
  };
  const int64_t few = steps_among(20);
  EXPECT_LT(steps_among(80), few * 6);
  EXPECT_GT(few, 100);
}

TEST_P(SqlQueryTest, ShowsMetricsAndPoints) {
  const std::string loss = "a eval/loss 3 1 3 1 1 3 2 100";
  EXPECT_THAT(Rows("SELECT * FROM metrics"),
              ElementsAre(loss, "a train/loss 2 0 2 2.5 2 2.5 2.25 1"));
  EXPECT_THAT(Rows("SELECT * FROM metrics WHERE run = 'a' AND key = 'eval/loss'"),
              ElementsAre(loss));
  EXPECT_THAT(Rows("SELECT * FROM metrics WHERE key = 'eval/loss'"), ElementsAre(loss));
  EXPECT_THAT(Rows("SELECT * FROM metrics WHERE run = NULL OR key = NULL"), IsEmpty());
  EXPECT_THAT(Rows("SELECT cell, last FROM cells JOIN metrics USING (run) WHERE key = 'eval/loss'"),
              ElementsAre("c0 1"));
  // SQLite doesn't ask the authorizer about the columns of USING.
  EXPECT_THAT(Rows("SELECT count(*) FROM metrics JOIN (SELECT 'a' AS run) USING (run)"),
              ElementsAre("2"));
  EXPECT_THAT(Rows("SELECT m.key AS k, count(*) FROM metrics m JOIN runs USING (run) GROUP BY k"),
              ElementsAre("eval/loss 1", "train/loss 1"));
  EXPECT_THAT(Rows("SELECT run, key FROM metrics WHERE run = 'A' COLLATE NOCASE AND points = 2"),
              ElementsAre("a train/loss"));
  EXPECT_THAT(Rows("SELECT * FROM points('a', 'eval/loss')"),
              ElementsAre("0 3", "50 inf", "100 1"));
  EXPECT_THAT(Rows("SELECT r.run, p.step, value FROM runs r JOIN points(r.run, 'train/loss') p"),
              ElementsAre("a 0 2", "a 1 2.5"));
  EXPECT_EQ(Rows("SELECT * FROM points('a', 'eval/loss') WHERE run = 'a' AND key = 'eval/loss'"),
            Rows("SELECT * FROM points('a', 'eval/loss')"));
  EXPECT_THAT(Rows("SELECT DISTINCT run, key FROM points('a', 'eval/loss')"), SizeIs(1));
  EXPECT_THAT(Rows("SELECT run FROM points('a', 'eval/loss') WHERE key IS NULL"), IsEmpty());
  EXPECT_THAT(Rows("SELECT * FROM points('a', 'no such key')"), IsEmpty());
  EXPECT_THAT(Rows("SELECT * FROM points(NULL, 'eval/loss')"), IsEmpty());
  EXPECT_EQ(Refusal("SELECT * FROM points('nobody', 'eval/loss')"), "there is no run 'nobody'");
  EXPECT_EQ(Refusal("SELECT * FROM points('secretrun', 'eval/loss')"),
            "there is no run 'secretrun'");
  EXPECT_THAT(Refusal("SELECT * FROM points('a')"), HasSubstr("points(run, key)"));
}

TEST_P(SqlQueryTest, HasNoLastValueOfARunThatDiverged) {
  Lease lease(&store(), "b", {"b"});
  lease.Send("b", MakePoints(1, {MakeColumn("eval/loss", {0}, {3}),
                                 MakeColumn("train/loss", {0, 1}, {3.5, NAN})}));
  lease.Send("b", FinishedEvent{true, 1});
  EXPECT_THAT(Rows("SELECT key, last IS NULL, min FROM metrics WHERE run = 'b'"),
              ElementsAre("eval/loss 1 3", "train/loss 1 3.5"));
}

TEST_P(SqlQueryTest, ShowsAnalyses) {
  EXPECT_THAT(Rows("SELECT analysis, kind, owner, state, run, step FROM analyses"),
              ElementsAre("ofa kind of request ada QUEUED a 100"));
}

TEST_P(SqlQueryTest, HasTheDocumentedColumns) {
  std::vector<std::string> described;
  for (const SqlView& view : SqlViews()) {
    KeptRows kept;
    const std::string from = absl::StrReplaceAll(view.name, {{"(run, key)", "('a', 'x')"}});
    const absl::Status status = Ask(absl::StrCat("SELECT * FROM ", from), &kept);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> names;
    for (const SqlColumn& column : view.columns) {
      names.push_back(column.name);
      described.push_back(
          absl::StrCat(view.name, " ", column.name, " ", column.type, " ", column.meaning));
    }
    EXPECT_EQ(kept.columns, names) << view.name;
  }
  EXPECT_EQ(Rows("SELECT * FROM columns"), described);
}

// The page has one table per view, and names every function.
TEST_P(SqlQueryTest, IsDocumented) {
  std::stringstream page;
  page << std::ifstream(ABLATE_SOURCE "/docs/reference/sql.md").rdbuf();
  std::string expected;
  for (const SqlView& view : SqlViews()) {
    expected = absl::StrCat("## ", view.name, "\n\n", view.meaning,
                            "\n\n| column | type | meaning |\n| --- | --- | --- |\n");
    for (const SqlColumn& column : view.columns) {
      absl::StrAppend(&expected, "| ", column.name, " | ", column.type, " | ", column.meaning,
                      " |\n");
    }
    EXPECT_THAT(page.str(), HasSubstr(expected + "\n"));
  }
  for (const absl::string_view function : SqlFunctions()) {
    EXPECT_THAT(page.str(), HasSubstr(absl::StrCat("`", function, "`")));
  }
}

TEST_P(SqlQueryTest, ShowsTheViewersOwn) {
  const std::vector<std::string> all = {"SELECT experiment, name FROM experiments",
                                        "SELECT cell FROM cells",
                                        "SELECT run FROM runs",
                                        "SELECT value FROM settings",
                                        "SELECT run FROM metrics",
                                        "SELECT run FROM analyses"};
  for (const std::string& statement : all) {
    EXPECT_THAT(Rows(statement), Not(Contains(HasSubstr("secret")))) << statement;
    EXPECT_THAT(Rows(statement), Not(IsEmpty())) << statement;
    EXPECT_THAT(Rows(statement, {"bob"}), Contains(HasSubstr("secret"))) << statement;
    EXPECT_THAT(Rows(statement, {"root", true}), Contains(HasSubstr("secret"))) << statement;
  }
  EXPECT_THAT(Rows("SELECT name FROM settings GROUP BY name", {"it's"}), SizeIs(3));
  // SQLite asks about tables without a read column in another way, and about aliases.
  for (const char* view :
       {"experiments", "cells", "runs", "settings", "metrics", "analyses", "columns"}) {
    for (const Viewer& viewer : {Viewer{"ada"}, Viewer{"root", true}}) {
      Rows(absl::StrCat("SELECT count(*) FROM ", view), viewer);
      Rows(absl::StrCat("SELECT 1 FROM ", view, ", metrics"), viewer);
      Rows(absl::StrCat("SELECT 1 FROM runs LEFT JOIN ", view, " ON true"), viewer);
      const SqlView* described =
          std::find_if(SqlViews().begin(), SqlViews().end(),
                       [&](const SqlView& one) { return one.name == std::string(view); });
      Rows(absl::StrCat("SELECT v.", described->columns[0].name, " AS alias, count(*) FROM ", view,
                        " v, metrics, points('a', 'x') GROUP BY alias ORDER BY alias"),
           viewer);
    }
  }
}

// An answer with all that it tells: its rows, its error, and the steps of SQLite's virtual machine.
struct Told {
  std::vector<std::string> rows;
  std::string error;
  int64_t steps = 0;
  bool operator==(const Told&) const = default;
};
void PrintTo(const Told& told, std::ostream* out) {
  *out << told.steps << " steps, error \"" << told.error << "\", rows "
       << absl::StrJoin(told.rows, " | ");
}

// Questions about a value of a column of a view, each of which has an answer, an error or a time of
// its own if SQLite evaluates it on a row with the value.
constexpr absl::string_view kQuestions[] = {
    "SELECT count(*) FROM $view WHERE $column >= '' AND CASE WHEN $column = $value THEN $error END",
    "SELECT count(*) FROM $view WHERE $column = $value AND $error",
    "SELECT count(*) FROM $view WHERE $column IN ($value, 'x') OR $column > $value AND $error",
    "SELECT max($column) FROM $view WHERE CASE WHEN $column = $value THEN $error ELSE 1 END",
    "SELECT DISTINCT CASE WHEN $column = $value THEN $error END FROM $view",
    "SELECT $column FROM $view WHERE $column <= $value ORDER BY $column DESC LIMIT 1",
    "SELECT $column FROM $view ORDER BY CASE WHEN $column = $value THEN $error END LIMIT 1",
    "SELECT row_number() OVER (ORDER BY $column) FROM $view WHERE CASE WHEN $column = $value THEN "
    "$error ELSE 1 END LIMIT 3",
    "SELECT sum(CASE WHEN $column = $value THEN $error END) OVER (PARTITION BY $column) FROM $view",
    "SELECT count(*) FROM $view AS a JOIN $view AS b ON a.$column = b.$column WHERE CASE WHEN "
    "b.$column = $value THEN $error ELSE 1 END",
    "SELECT count(*) FROM (SELECT 1) LEFT JOIN $view AS a ON a.$column = $value AND $error",
    "WITH q AS NOT MATERIALIZED (SELECT $column AS k FROM $view) SELECT count(*) FROM q WHERE k = "
    "$value AND $error",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n, $view WHERE i < 9 AND $column "
    "= $value AND $error) SELECT max(i) FROM n",
    "SELECT count(*) FROM $view WHERE $column = (SELECT max($column) FROM $view WHERE $column <= "
    "$value)",
    "SELECT group_concat($column) FILTER (WHERE $column = $value AND $error) FROM $view GROUP BY "
    "CASE WHEN $column = $value THEN $error END",
    "SELECT count(*) FROM $view WHERE $column = $value AND exists (SELECT 1 FROM points($value, "
    "'eval/loss'))",
    "SELECT 1 FROM $view WHERE $column GLOB $value HAVING $error",
    "SELECT count(*) FROM $view JOIN (SELECT $value AS $column) USING ($column)",
    "SELECT count(*) FROM (SELECT $value AS $column) NATURAL LEFT JOIN $view WHERE $error",
    "SELECT count(*) FROM points($value, 'eval/loss')",
};

// Returns a value that no row has and that comes at the same place among `open` values as `hidden`.
std::string Invented(const std::string& hidden, const std::vector<std::string>& open) {
  if (hidden[0] == '\'') return absl::StrCat(hidden.substr(0, hidden.size() - 2), "~'");
  double number = 0;
  EXPECT_TRUE(absl::SimpleAtod(hidden, &number)) << hidden;
  const bool is_greatest = std::all_of(open.begin(), open.end(), [&](const std::string& text) {
    double other = -HUGE_VAL;
    return !absl::SimpleAtod(text, &other) || other < number;
  });
  const std::string more = absl::StrCat(is_greatest ? number + 1e5 : number - 1e5);
  return absl::StrContains(hidden, '.') ? absl::StrCat(more, ".5") : more;
}

// Returns an expression of the value. SQLite would share a bare number with equal ones of the
// views.
std::string Literal(const std::string& value) {
  if (value[0] == '\'') return value;
  return absl::StrCat("CAST('", value, "' AS ", absl::StrContains(value, '.') ? "REAL" : "INTEGER",
                      ")");
}

TEST_P(SqlQueryTest, TellsNothingOfHiddenRows) {
  StepMeter meter;
  const auto told = [&](absl::string_view question, const std::string& view,
                        const std::string& column, const std::string& value) {
    Told result;
    result.steps = meter.StepsOf([&] {
      KeptRows kept;
      const std::string statement =
          absl::StrReplaceAll(question, {{"$view", view},
                                         {"$column", column},
                                         {"$value", Literal(value)},
                                         {"$error", "abs(-9223372036854775807 - 1)"}});
      const std::string error(Ask(statement, &kept).message());
      result.error = absl::StrReplaceAll(
          error, {{absl::StrCat("'", absl::StrReplaceAll(value, {{"'", ""}}), "'"), "the value"}});
      result.rows = kept.rows;
    });
    return result;
  };
  int compared = 0;
  for (const SqlView& view : SqlViews()) {
    const std::string name =
        absl::StrReplaceAll(view.name, {{"(run, key)", "('secretrun', 'eval/loss')"}});
    for (const SqlColumn& column : view.columns) {
      const std::string visible = absl::StrCat("SELECT DISTINCT quote(", column.name, ") FROM ",
                                               absl::StrReplaceAll(name, {{"secretrun", "a"}}));
      const std::vector<std::string> open = Rows(visible);
      const std::string all = absl::StrCat("SELECT DISTINCT quote(", column.name, ") FROM ", name);
      for (const std::string& hidden : Rows(all, {"root", true})) {
        if (hidden == "NULL" || std::count(open.begin(), open.end(), hidden) > 0) continue;
        const std::string invented = Invented(hidden, open);
        for (const absl::string_view question : kQuestions) {
          EXPECT_EQ(told(question, name, column.name, hidden),
                    told(question, name, column.name, invented))
              << question << " for " << view.name << "." << column.name << " = " << hidden;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 400);
}

TEST_P(SqlQueryTest, RefusesTheTablesThemselves) {
  const std::vector<std::string> forms = {
      "SELECT * FROM main.$",
      "SELECT count(*) FROM main.$",
      "SELECT 1 FROM main.$",
      "SELECT rowid FROM main.$",
      "SELECT $.* FROM main.$, runs",
      "WITH runs AS (SELECT * FROM main.$) SELECT * FROM runs",
      "WITH experiments AS (SELECT count(*) AS n FROM main.$) SELECT n FROM experiments",
      "WITH RECURSIVE runs(x) AS (SELECT 1 UNION ALL SELECT 1 FROM main.$) SELECT x FROM runs",
      "SELECT (SELECT count(*) FROM main.$)",
      "SELECT 1 WHERE EXISTS (SELECT * FROM main.$)",
      "SELECT run FROM runs UNION ALL SELECT 1 FROM main.$",
      "SELECT * FROM runs LEFT JOIN main.$ ON true",
      "SELECT * FROM (SELECT * FROM (SELECT 1 FROM main.$) AS runs) AS experiments",
      "SELECT run FROM runs ORDER BY (SELECT 1 FROM main.$)",
      "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM main.$)) FROM runs",
      "VALUES ((SELECT 1 FROM main.$))",
  };
  std::vector<std::string> tables = Tables();
  for (const char* table : {"sqlite_schema", "sqlite_master", "sqlite_sequence"}) {
    tables.push_back(table);
  }
  EXPECT_GT(tables.size(), 25u);
  for (const std::string& table : tables) {
    for (const std::string& form : forms) Refusal(absl::StrReplaceAll(form, {{"$", table}}));
  }
  for (const char* hidden : {"private_to", "request_id", "spec", "lease", "deleted"}) {
    for (const char* view : {"experiments", "cells", "runs", "settings", "analyses", "columns"}) {
      Refusal(absl::StrCat("SELECT ", hidden, " FROM ", view));
    }
  }
  for (const std::string& table : tables) {
    if (table == "experiments" || table == "cells" || table == "runs" || table == "analyses") {
      continue;  // their views
    }
    for (const char* form : {"SELECT count(*) FROM $", "SELECT 1 FROM \"$\"", "SELECT * FROM $",
                             "SELECT count(*) FROM runs, $ AS runs2"}) {
      Refusal(absl::StrReplaceAll(form, {{"$", table}}));
      Refusal(absl::StrReplaceAll(form, {{"$", absl::AsciiStrToUpper(table)}}));
    }
  }
  for (const char* table : {"pragma_table_list", "dbstat", "json_each", "sqlite_stmt", "fts5"}) {
    Refusal(absl::StrCat("SELECT count(*) FROM ", table));
  }
  EXPECT_THAT(Rows("WITH x AS (SELECT 1 UNION ALL SELECT 2) SELECT count(*) FROM x, RUNS, Metrics"),
              ElementsAre("8"));
  EXPECT_THAT(Rows("WITH runs AS (SELECT 1 UNION ALL SELECT 2) SELECT count(*) FROM runs"),
              ElementsAre("2"));
  EXPECT_EQ(Refusal("SELECT * FROM temp.sqlite_master"), "no such table: sqlite_temp_master");
}

// SQLite doesn't ask the authorizer about columns of USING and NATURAL.
TEST_P(SqlQueryTest, RefusesTheTablesInJoinsByEqualNames) {
  const std::set<std::string> views = {"experiments", "cells", "runs", "analyses"};
  int asked = 0;
  for (const std::string& table : Tables()) {
    for (const char* form : {"SELECT count(*) FROM $ NATURAL JOIN ($one)",
                             "SELECT $column FROM ($one) FULL JOIN $ USING ($column)"}) {
      for (const std::string& column : ColumnsOf(table)) {
        const auto ask = [&](const std::string& name) {
          return Refusal(absl::StrReplaceAll(
              form,
              {{"$one", absl::StrCat("SELECT 1 AS ", column)}, {"$column", column}, {"$", name}}));
        };
        EXPECT_EQ(ask("main." + table), absl::StrCat("no such table: main.", table));
        ++asked;
        if (views.count(table) > 0) continue;
        EXPECT_EQ(ask(table), absl::StrCat("no such table: ", table));
      }
    }
  }
  EXPECT_GT(asked, 300);
}

TEST_P(SqlQueryTest, NamesTheProblem) {
  EXPECT_EQ(Refusal("SELECT run\nFORM runs"), "near \"runs\": syntax error in line 2, column 6");
  EXPECT_EQ(Refusal("SELECT lr FROM runs"), "no such column: lr in line 1, column 8");
  EXPECT_EQ(Refusal("SELECT * FROM run"), "no such table: run");
  EXPECT_EQ(Refusal("SELECT load_extension('x')"), "no such function: load_extension");
  EXPECT_EQ(Refusal("SELECT utc(1)"), "no such function: utc");
  EXPECT_EQ(Refusal("DELETE FROM runs"), "cannot modify runs because it is a view");
  EXPECT_EQ(Refusal("DROP VIEW runs"), "only SELECT is possible");
  EXPECT_EQ(Refusal("EXPLAIN QUERY PLAN SELECT * FROM runs"), "only SELECT is possible");
  EXPECT_EQ(Refusal("PRAGMA table_list"), "only SELECT is possible");
  EXPECT_EQ(Refusal("SELECT 1; SELECT 2"), "there is more than one statement");
  EXPECT_EQ(Refusal("SELECT ?1"), "it has a parameter, such as ?, without a value");
  EXPECT_EQ(Refusal(" -- nothing"), "it is empty");
  EXPECT_EQ(Refusal("SELECT '\xff'"), "it isn't text in UTF-8 without NUL characters");
  EXPECT_EQ(Refusal(std::string("SELECT 1\0", 9)), "it isn't text in UTF-8 without NUL characters");
  EXPECT_EQ(Refusal("SELECT \"none\" FROM runs"), "no such column: none in line 1, column 8");
  EXPECT_THAT(Rows("SELECT 1; -- a comment\n ;"), ElementsAre("1"));
  EXPECT_THAT(Rows("SELECT CAST(x'ff' AS TEXT), x'00', 9e999, 'ü'"),
              ElementsAre("blob blob inf ü"));
}

TEST_P(SqlQueryTest, SaysTheNumberOfALimit) {
  const auto many = [](int count, const char* part, const char* between) {
    return absl::StrJoin(std::vector<std::string>(static_cast<size_t>(count), part), between);
  };
  EXPECT_THAT(Refusal(many(11, "SELECT 1", " UNION ALL ")),
              HasSubstr("too many terms in compound SELECT, at most 10"));
  EXPECT_THAT(Refusal(absl::StrCat("SELECT ", many(101, "1", ", "))),
              HasSubstr("too many columns in result set, at most 100"));
  EXPECT_THAT(Refusal(absl::StrCat("SELECT 1 GROUP BY ", many(101, "1", ", "))),
              HasSubstr("too many terms in GROUP BY clause, at most 100"));
  EXPECT_THAT(Refusal(absl::StrCat("SELECT max(", many(9, "1", ", "), ")")),
              HasSubstr("too many arguments on function max, at most 8"));
  EXPECT_THAT(Refusal(absl::StrCat("SELECT 'a' LIKE '", many(101, "a", ""), "'")),
              HasSubstr("LIKE or GLOB pattern too complex, at most 100"));
  EXPECT_THAT(Refusal("WITH RECURSIVE x(s) AS (SELECT 'a' UNION ALL SELECT s || s FROM x) SELECT s "
                      "FROM x WHERE length(s) > 900000"),
              HasSubstr("string or blob too big, at most 1000000"));
  EXPECT_THAT(Refusal(absl::StrCat("SELECT ", many(60, "1", " + "))),
              HasSubstr("Expression tree is too large (maximum depth 50)"));
}

}  // namespace
}  // namespace ablate::storage
