// `ablate sql QUERY`: prints the rows of a SELECT over the server's views.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

constexpr char kSchema[] = "SELECT * FROM columns";

struct SqlOptions {
  std::string query;
  bool schema = false;
  bool csv = false;
  bool json = false;
};

absl::StatusOr<v1::SqlRequest> MakeSqlRequest(const SqlOptions& options) {
  if (options.csv && options.json) {
    return absl::InvalidArgumentError("--csv: can't be combined with --json; remove one of them");
  }
  if (options.schema == !options.query.empty()) {
    return absl::InvalidArgumentError(options.schema
                                          ? "--schema: can't be combined with a QUERY; remove one"
                                          : "QUERY: missing; expected a SELECT, or --schema");
  }
  v1::SqlRequest request;
  request.set_statement(options.schema ? kSchema : options.query);
  return request;
}

bool IsNumber(const v1::SqlValue& value) { return value.has_integer() || value.has_real(); }

// Returns a value as text; NULL is empty.
std::string TextOf(const v1::SqlValue& value) {
  switch (value.value_case()) {
    case v1::SqlValue::kInteger:
      return absl::StrCat(value.integer());
    case v1::SqlValue::kReal:
      return Exact(value.real());
    case v1::SqlValue::kText:
      return value.text();
    case v1::SqlValue::kBlob:
      return absl::StrCat("x'", absl::BytesToHexString(value.blob()), "'");
    case v1::SqlValue::VALUE_NOT_SET:
      break;
  }
  return "";
}

void PrintSqlCsv(const v1::SqlRows& result, std::ostream* out) {
  const auto print = [out](const auto& values, const auto& text) {
    *out << absl::StrJoin(values, ",", [&](std::string* line, const auto& value) {
      line->append(text::CsvField(text(value)));
    }) << "\n";
  };
  print(result.columns(), [](const std::string& name) { return name; });
  for (const v1::SqlRow& row : result.rows()) {
    print(row.values(), TextOf);
  }
}

int PrintSqlTable(const Context& context, const v1::SqlRows& result) {
  std::vector<Column> columns;
  for (int i = 0; i < result.columns_size(); ++i) {
    const bool numbers =
        std::all_of(result.rows().begin(), result.rows().end(), [i](const auto& row) {
          const v1::SqlValue& value = row.values(i);
          return IsNumber(value) || value.value_case() == v1::SqlValue::VALUE_NOT_SET;
        });
    columns.push_back({result.columns(i), numbers});
  }
  Table table(std::move(columns));
  for (const v1::SqlRow& row : result.rows()) {
    std::vector<std::string> texts;
    for (const v1::SqlValue& value : row.values()) texts.push_back(TextOf(value));
    table.Add(std::move(texts));
  }
  return PrintTable(context, table);
}

absl::StatusOr<int> Sql(const SqlOptions& options, const v1::SqlRequest& asked,
                        const Context& context, Connection* connection) {
  v1::SqlRequest request = asked;
  if (options.query == "-") {
    request.set_statement(std::string(std::istreambuf_iterator<char>(*context.console.in), {}));
  }
  // Nothing is printed of a result that ends with an error.
  v1::SqlRows result;
  RETURN_IF_ERROR(connection->Stream(kSql, request, [&](const v1::SqlRows& part) {
    const bool fits = std::all_of(part.rows().begin(), part.rows().end(), [&](const auto& row) {
      return row.values_size() == std::max(result.columns_size(), part.columns_size());
    });
    result.MergeFrom(part);
    return fits ? absl::OkStatus() : absl::InternalError("the server sent a malformed row");
  }));
  if (options.json) return PrintJson(context, result);
  if (!options.csv) return PrintSqlTable(context, result);
  PrintSqlCsv(result, &context.console.data());
  return kSuccess;
}

}  // namespace

Action DefineSql(Command* command) {
  auto options = std::make_shared<SqlOptions>();
  command->OptionalArgument(&options->query, "QUERY",
                            "A SELECT in SQLite's dialect; - reads it from standard input");
  command->Flag(&options->schema, "--schema", "List the views and their columns");
  command->Flag(&options->csv, "--csv", "Print CSV");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "The views are experiments, cells, runs, settings, metrics and analyses; points(run, key) "
      "has the points of a run's metric. They can only be read. docs/reference/sql.md has their "
      "columns and the limits. Numbers are exact: use round(x, 4) for a short table. NULL is "
      "empty. CSV has texts as they are. A spreadsheet may read one that begins with =, +, - or @ "
      "as a formula, so import the file as text.\n\n"
      "Examples:\n  ablate sql 'SELECT state, count(*) FROM runs GROUP BY state'\n"
      "  ablate sql \"SELECT step, value FROM points('3f2a9c1b7d4e', 'eval/loss')\" --csv\n"
      "  ablate sql - < question.sql");
  return WithServer(*command, options, MakeSqlRequest, Sql);
}

}  // namespace ablate::client
