// Runs of all experiments as a table and drawings, and SQL. The address holds the whole view.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/names.h"
#include "client/near_values.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/web/curves.h"
#include "client/web/page.h"

namespace ablate::web {
namespace {

constexpr uint32_t kRunsOfPage = 100, kDrawnRuns = 1000;
constexpr size_t kShownSqlRows = 500;

std::vector<std::string> ColumnsOf(const Request& request) {
  const std::string given = request.Query("columns");
  std::vector<std::string> columns;
  for (const absl::string_view name :
       absl::StrSplit(given.empty() ? "eval/loss,train/loss" : given, ',')) {
    const std::string column(absl::StripAsciiWhitespace(name));
    if (!column.empty()) columns.push_back(column);
  }
  return columns;
}

v1::ListRunsRequest RunsRequest(const Request& request, const std::vector<std::string>& columns) {
  v1::ListRunsRequest runs;
  const std::string experiment = request.Query("experiment");
  runs.set_experiment(experiment.empty() ? "experiments/-" : client::ExperimentName(experiment));
  runs.set_filter(request.Query("filter"));
  runs.set_order_by(request.Query("sort"));
  runs.set_page_token(request.Query("page"));
  runs.set_archived(request.Query("archived") == "yes");
  runs.set_page_size(request.Query("draw").empty() ? kRunsOfPage : kDrawnRuns);
  for (const std::string& column : columns) runs.add_columns(column);
  return runs;
}

// Returns the order that a column's title leads to: ascending, then descending.
std::string OrderBy(const std::string& column, const std::string& order) {
  return order == column ? column + " desc" : column;
}

Html RunsTable(const Request& request, const std::vector<std::string>& columns,
               const v1::ListRunsResponse& runs) {
  std::vector<Column> titles = {{"Run"}, {"State"}, {"Step", true}};
  for (const std::string& column : columns) {
    Fields sorted = request.query;
    sorted["sort"] = OrderBy(column, request.Query("sort"));
    sorted.erase("page");
    titles.push_back({column, true, Address("/runs", sorted)});
  }
  std::vector<std::vector<Cell>> rows;
  for (const v1::RunRow& row : runs.rows()) {
    std::vector<std::string> notes;
    if (!row.failure().empty()) notes.push_back(client::FirstLine(row.failure()));
    rows.push_back(
        {{absl::StrCat(client::Id(row.experiment()), "/", row.cell()), PathOfRun(row.run())},
         {.text = v1::RunState::Value_Name(row.state()), .notes = notes},
         {client::StepText(row.step(), row.steps())}});
    for (const google::protobuf::Value& value : row.values()) {
      rows.back().push_back(
          {value.has_number_value() ? client::Short(value.number_value()) : value.string_value()});
    }
  }
  Markup out;
  out.Add(Table(request.Query("sort").empty() ? "The newest experiment first"
                                              : "In the order " + request.Query("sort"),
                titles, rows));
  Fields next = request.query;
  next["page"] = runs.next_page_token();
  if (!next["page"].empty()) Link(Address("/runs", next), "More runs", &out);
  return out.TakeHtml();
}

void RunsForm(const Request& request, const std::vector<std::string>& columns, Markup* out) {
  out->Open("form", {{"class", "controls"}});
  out->Open("label", {{"class", "wide"}}).Text("Condition ");
  out->Void("input", {{"name", "filter"},
                      {"value", request.Query("filter")},
                      {"data-completes", ""},
                      {"autocomplete", "off"}});
  out->Close();
  Input("experiment", "Experiment", request.Query("experiment"), "text", out);
  out->Open("label", {{"class", "wide"}}).Text("Columns ");
  out->Void("input", {{"name", "columns"},
                      {"value", absl::StrJoin(columns, ",")},
                      {"data-completes", ""},
                      {"autocomplete", "off"}});
  out->Close();
  Input("sort", "Order", request.Query("sort"), "text", out);
  Select("draw", "Draw",
         {{"", "nothing"},
          {"scatter", "the second number over the first"},
          {"parallel", "parallel axes"}},
         request.Query("draw"), out);
  Input("archived", "archived, too", request.Query("archived"), "checkbox", out);
  out->Element("button", "Show").Close();
}

Response Csv(const Outcome& outcome) {
  Response response = {.type = "text/csv; charset=utf-8", .body = outcome.out};
  if (outcome.code != 0)
    response = {.status = 400, .type = "text/plain; charset=utf-8", .body = outcome.err};
  AddPolicy("", &response);
  return response;
}

std::string TextOf(const v1::SqlValue& value) {
  if (value.has_integer()) return absl::StrCat(value.integer());
  if (value.has_real()) return client::Short(value.real());
  return value.has_text() ? value.text() : value.has_blob() ? "(bytes)" : "";
}

// Adds the paths of the fields that a filter may name.
void AddPaths(const google::protobuf::Descriptor& type, const std::string& prefix, int depth,
              std::set<std::string>* paths) {
  constexpr int kDeepest = 5;
  for (int i = 0; i < type.field_count() && depth < kDeepest; ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const std::string path = absl::StrCat(prefix, field.name());
    const google::protobuf::Descriptor* below = field.message_type();
    if (below == nullptr || field.is_repeated() || below->file() != type.file()) {
      paths->insert(path);
    } else {
      AddPaths(*below, path + ".", depth + 1, paths);
    }
  }
}

}  // namespace

absl::StatusOr<Response> RunsView(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  const std::vector<std::string> columns = ColumnsOf(request);
  const v1::ListRunsRequest list = RunsRequest(request, columns);
  Markup out;
  out.Element("h1", "Runs");
  RunsForm(request, columns, &out);
  const auto runs = connection->Call(client::kListRuns, list);
  if (!runs.ok() && !absl::IsInvalidArgument(runs.status())) return runs.status();
  if (!runs.ok()) {
    out.Element("p", {{"role", "alert"}, {"class", "alarm"}}, std::string(runs.status().message()));
  } else if (runs->rows().empty()) {
    out.Add(Paragraph("No run meets the condition."));
    for (const std::string& near : client::NearValues(connection.get(), list))
      out.Add(Paragraph(near));
  } else {
    // Drawn by script, of the table.
    if (!request.Query("draw").empty()) {
      out.Open("div", {{"id", "drawing"}, {"data-kind", request.Query("draw")}});
      out.Element("noscript", "The drawing needs script; the table has the same numbers.").Close();
    }
    out.Add(RunsTable(request, columns, *runs));
    out.Open("p", {{"class", "actions"}});
    Link(Address("/runs.csv", request.query), "All of them as CSV", &out);
    out.Close();
  }
  return PageOf(site, {.title = "Runs", .active = "/runs"}, out.TakeHtml());
}

absl::StatusOr<Response> RunsCsv(Site& site, const Request& request) {
  std::vector<std::string> arguments = {
      "runs", "--csv", "--limit=0",
      "--columns=experiment,state," + absl::StrJoin(ColumnsOf(request), ",")};
  if (!request.Query("sort").empty()) arguments.push_back("--sort=" + request.Query("sort"));
  if (request.Query("archived") == "yes") arguments.push_back("--archived");
  arguments.push_back("--");  // the rest isn't an option, whatever it begins with
  for (const char* part : {"experiment", "filter"}) {
    if (!request.Query(part).empty()) arguments.push_back(request.Query(part));
  }
  return Csv(RunCommand(site, arguments));
}

absl::StatusOr<Response> SqlView(Site& site, const Request& request) {
  const std::string query = request.Query("query");
  Markup out;
  out.Element("h1", "SQL");
  out.Open("form").Open("p").Open("label", {{"for", "query"}});
  out.Text(
      "One SELECT over experiments, cells, runs, settings, metrics, analyses and points(run, key)");
  out.Close().Close();
  out.Open("textarea",
           {{"id", "query"}, {"name", "query"}, {"rows", "6"}, {"spellcheck", "false"}});
  out.Lines(query.empty() ? "SELECT state, count(*) AS runs FROM runs GROUP BY state" : query)
      .Close();
  out.Open("p").Element("button", "Run").Close().Close();
  if (!query.empty()) {
    v1::SqlRequest sql;
    sql.set_statement(query);
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;
    bool more = false;
    const auto connection = site.pool.Borrow();
    const absl::Status status = connection->Stream(client::kSql, sql, [&](const v1::SqlRows& part) {
      for (const std::string& name : part.columns()) columns.push_back({name});
      for (const v1::SqlRow& row : part.rows()) {
        more = rows.size() == kShownSqlRows;
        if (more) return absl::CancelledError();
        rows.emplace_back();
        for (const v1::SqlValue& value : row.values()) {
          if (rows.back().size() == columns.size()) break;
          if (value.has_integer() || value.has_real()) columns[rows.back().size()].number = true;
          rows.back().push_back({TextOf(value)});
        }
      }
      return absl::OkStatus();
    });
    if (!status.ok() && !more) {
      out.Element("p", {{"role", "alert"}, {"class", "alarm"}}, std::string(status.message()));
    } else {
      out.Add(Table(more ? absl::StrCat("The first ", kShownSqlRows, " rows")
                         : client::Count(rows.size(), "row"),
                    columns, rows));
      Link(Address("/sql.csv", request.query), "All rows as CSV", &out);
    }
  }
  return PageOf(site, {.title = "SQL", .active = "/sql"}, out.TakeHtml());
}

absl::StatusOr<Response> SqlCsv(Site& site, const Request& request) {
  return Csv(RunCommand(site, {"sql", "--csv", "--", request.Query("query")}));
}

absl::StatusOr<Response> NamesView(Site& site, const Request&) {
  std::set<std::string> names = {"experiment", "owner",   "tags",     "state", "seed",
                                 "parameters", "created", "started",  "ended", "AND",
                                 "OR",         "NOT",     "RUNNING",  "DONE",  "DIVERGED",
                                 "FAILED",     "QUEUED",  "CANCELLED"};
  AddPaths(*v1::BaseSpec::descriptor(), "", 0, &names);
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const auto list, connection->Call(client::kListExperiments, {}));
  for (const v1::Experiment& experiment : list.experiments()) {
    for (const v1::Axis& axis : experiment.spec().axes()) names.insert(client::AxisName(axis));
    for (const std::string& tag : experiment.tags()) names.insert("tags:" + tag);
    names.insert(client::PrimaryMetric(experiment.spec()));
  }
  if (list.experiments_size() > 0) {
    v1::ListMetricsRequest metrics;
    metrics.set_parent(list.experiments(0).name());
    const auto answer = connection->Call(client::kListMetrics, metrics);
    for (int i = 0; answer.ok() && i < answer->metrics_size(); ++i)
      names.insert(answer->metrics(i).key());
  }
  Response response = {.type = "application/json"};
  response.body = absl::StrCat(
      "[",
      absl::StrJoin(names, ",",
                    [](std::string* out, const std::string& name) { out->append(JsonText(name)); }),
      "]");
  AddPolicy("", &response);
  return response;
}

}  // namespace ablate::web
