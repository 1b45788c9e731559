// `ablate metrics EXP`: summaries as a table, or every point as CSV or JSON lines.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/pages.h"
#include "client/table.h"
#include "proto/reflect/from_value.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

struct Options {
  std::string target;
  std::vector<std::string> keys;
  std::optional<uint32_t> first_step;
  std::optional<uint32_t> last_step;
  std::optional<uint32_t> max_points;
  bool csv = false;
  bool json = false;
  bool list = false;
};

// Quoted if a reader of CSV would otherwise see several fields or lines.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

void PrintCsv(const v1::Series& series, bool with_key, std::ostream* out) {
  fmt::memory_buffer lines;
  std::string front = CsvField(series.cell()) + ',';
  if (with_key) front += CsvField(series.key()) + ',';
  const int points = std::min(series.steps_size(), series.values_size());
  for (int i = 0; i < points; ++i) {
    fmt::format_to(std::back_inserter(lines), "{}{},{}\n", front, series.steps(i),
                   Exact(series.values(i)));
  }
  out->write(lines.data(), static_cast<std::streamsize>(lines.size()));
}

// The keys of an experiment or a run.
absl::StatusOr<v1::ListMetricsResponse> ListKeys(Connection* connection,
                                                 const std::string& parent) {
  v1::ListMetricsRequest request;
  request.set_parent(parent);
  return AllPages(
      &v1::ListMetricsResponse::mutable_metrics, request,
      [&](const v1::ListMetricsRequest& page) { return connection->ListMetrics(page); });
}

// Says which of the wanted keys have no points, and what they may have meant.
void NoteMissing(Connection* connection, const Context& context, const std::string& experiment,
                 const std::vector<std::string>& wanted, const std::set<std::string>& seen) {
  std::vector<std::string> known;
  for (const std::string& key : wanted) {
    if (seen.count(key) > 0) continue;
    if (known.empty()) {
      const absl::StatusOr<v1::ListMetricsResponse> list = ListKeys(connection, experiment);
      if (!list.ok()) return;
      for (const v1::MetricInfo& metric : list->metrics()) known.push_back(metric.key());
    }
    context.console.Note(absl::StrCat("no points of ", key, reflect::DidYouMean(key, known)));
  }
}

// All rows of the experiment, or the one that `cell` names.
absl::StatusOr<v1::ListRunsResponse> Rows(Connection* connection, const std::string& experiment,
                                          const std::optional<CellName>& cell) {
  if (!cell) return ListAllRuns(connection, experiment);
  absl::StatusOr<v1::RunRow> row = FindCell(connection, *cell);
  if (!row.ok()) return row.status();
  v1::ListRunsResponse rows;
  *rows.add_rows() = *std::move(row);
  return rows;
}

int PrintPoints(Connection* connection, const Context& context, const Options& options,
                const std::string& experiment, const std::optional<CellName>& cell) {
  v1::QueryMetricsRequest request;
  if (cell) {
    const absl::StatusOr<v1::RunRow> row = FindCell(connection, *cell);
    if (!row.ok()) return Fail(context, row.status());
    request.add_runs(row->run());
  } else {
    request.set_experiment(experiment);
  }
  for (const std::string& key : options.keys) request.add_keys(key);
  if (options.first_step) request.set_first_step(*options.first_step);
  if (options.last_step) request.set_last_step(*options.last_step);
  if (options.max_points) request.set_max_points(*options.max_points);

  std::ostream* out = context.console.out;
  const bool with_key = options.keys.size() != 1;
  if (options.csv) *out << (with_key ? "cell,key,step,value\n" : "cell,step,value\n");
  std::set<std::string> seen;
  const absl::Status status = connection->QueryMetrics(request, [&](const v1::Series& series) {
    v1::Series named = series;
    if (cell) named.set_cell(cell->cell);
    seen.insert(named.key());
    if (options.csv) {
      PrintCsv(named, with_key, out);
    } else {
      *out << ToJsonLine(named);
    }
    return out->good() ? absl::OkStatus() : absl::AbortedError("writing the output failed");
  });
  if (!status.ok()) return Fail(context, status);
  NoteMissing(connection, context, experiment, options.keys, seen);
  return kSuccess;
}

std::string OptionalText(bool has, double value) { return has ? Short(value) : "—"; }

int PrintSummaries(Connection* connection, const Context& context, const Options& options,
                   const std::string& experiment, const std::optional<CellName>& cell) {
  const absl::StatusOr<v1::ListRunsResponse> rows = Rows(connection, experiment, cell);
  if (!rows.ok()) return Fail(context, rows.status());
  Table table({{"cell"},
               {"key"},
               {"points", true},
               {"first", true},
               {"last", true},
               {"min", true},
               {"max", true},
               {"mean", true},
               {"non-finite", true}});
  std::set<std::string> seen;
  int damaged = 0;
  for (const v1::RunRow& row : rows->rows()) {
    // A run that ended well has a failure only where its summaries can't be read.
    const bool ended = row.state() == v1::RunState::DONE || row.state() == v1::RunState::DIVERGED;
    if (ended && !row.failure().empty()) {
      context.console.Error(row.failure());
      ++damaged;
    }
    for (const v1::Summary& summary : row.summaries()) {
      const auto& keys = options.keys;
      const bool wanted =
          keys.empty() || std::find(keys.begin(), keys.end(), summary.key()) != keys.end();
      if (!wanted) continue;
      seen.insert(summary.key());
      table.Add({row.cell(), summary.key(), text::Grouped(summary.count()),
                 OptionalText(summary.has_first(), summary.first()),
                 OptionalText(summary.has_last(), summary.last()),
                 OptionalText(summary.has_min(), summary.min()),
                 OptionalText(summary.has_max(), summary.max()),
                 OptionalText(summary.has_mean(), summary.mean()),
                 text::Grouped(summary.nonfinite())});
    }
  }
  *context.console.out << table.Render(context.console.table_width());
  NoteMissing(connection, context, experiment, options.keys, seen);
  return damaged > 0 ? kFailure : kSuccess;
}

int PrintKeys(Connection* connection, const Context& context, const Options& options,
              const std::string& experiment, const std::optional<CellName>& cell) {
  std::string parent = experiment;
  if (cell) {
    const absl::StatusOr<v1::RunRow> row = FindCell(connection, *cell);
    if (!row.ok()) return Fail(context, row.status());
    parent = row->run();
  }
  const absl::StatusOr<v1::ListMetricsResponse> list = ListKeys(connection, parent);
  if (!list.ok()) return Fail(context, list.status());
  if (options.json) {
    *context.console.out << ToJson(*list);
    return kSuccess;
  }
  Table table({{"key"}, {"points", true}});
  for (const v1::MetricInfo& metric : list->metrics()) {
    table.Add({metric.key(), text::Grouped(metric.count())});
  }
  *context.console.out << table.Render(context.console.table_width());
  return kSuccess;
}

// Why these options make no sense together; empty if they do.
const char* Contradiction(const Options& options) {
  if (options.csv && (options.json || options.list)) {
    return "--csv is for points, without --json or --list";
  }
  if (options.list && !options.keys.empty()) return "--list lists every metric, without --key";
  const bool of_points = options.first_step || options.last_step || options.max_points;
  if (of_points && (options.list || !(options.csv || options.json))) {
    return "--first-step, --last-step and --max-points are for points: add --csv or --json, "
           "without --list";
  }
  return "";
}

int Metrics(const Options& options, const Context& context) {
  if (const std::string problem = Contradiction(options); !problem.empty()) {
    context.console.Error(absl::StrCat("ablate metrics: ", problem));
    return kUsage;
  }
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const std::optional<CellName> cell = ParseCellName(options.target);
  const std::string experiment = cell ? cell->experiment : ExperimentName(options.target);
  const bool points = options.csv || options.json;
  const auto print = options.list ? PrintKeys : points ? PrintPoints : PrintSummaries;
  return print(connection->get(), context, options, experiment, cell);
}

}  // namespace

void AddMetrics(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("metrics", "Print an experiment's metrics: summaries, or all points");
  command.Argument(&options->target, "EXP", "experiment, or EXP/CELL for one cell");
  command.Options(&options->keys, "--key,-k", "KEY", "only this metric; repeatable [all]");
  command.Flag(&options->csv, "--csv",
               "all points: cell,step,value, or cell,key,step,value unless one --key is given");
  command.Flag(&options->json, "--json", "all points: one series a line, as the server sends them");
  command.Flag(&options->list, "--list", "only which metrics there are");
  command.Option(&options->first_step, "--first-step", "N", "points from this step on");
  command.Option(&options->last_step, "--last-step", "N", "points up to this step");
  command.Option(&options->max_points, "--max-points", "N",
                 "at most so many points a series, extremes kept (4 or more) [all]");
  command.Footer(
      "Numbers in CSV and JSON are exact; --first-step, --last-step and --max-points need "
      "one of the two.\n\n"
      "Example:\n  ablate metrics names-norm --key train/loss --csv > loss.csv");
  command.Do([options](const Context& context) { return Metrics(*options, context); });
}

}  // namespace ablate::client
