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
#include "absl/strings/str_join.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "proto/reflect/text.h"
#include "text/csv.h"
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

// What EXP or EXP/CELL names.
struct Target {
  std::string experiment;
  std::optional<CellName> cell;
};

Target ParseTarget(const std::string& text) {
  std::optional<CellName> cell = ParseCellName(text);
  std::string experiment = cell ? cell->experiment : ExperimentName(text);
  return {std::move(experiment), std::move(cell)};
}

void PrintCsv(const v1::Series& series, bool with_key, std::ostream* out) {
  fmt::memory_buffer lines;
  std::string front = text::CsvField(series.cell()) + ',';
  if (with_key) front += text::CsvField(series.key()) + ',';
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
  return ListAll(connection, &Connection::ListMetrics, &v1::ListMetricsResponse::mutable_metrics,
                 std::move(request));
}

// All rows of the experiment, or the one of the cell.
absl::StatusOr<v1::ListRunsResponse> Rows(Connection* connection, const Target& target) {
  if (!target.cell) return ListAllRuns(connection, target.experiment);
  absl::StatusOr<v1::RunRow> row = FindCell(connection, *target.cell);
  if (!row.ok()) return row.status();
  v1::ListRunsResponse rows;
  *rows.add_rows() = *std::move(row);
  return rows;
}

bool HasEnded(const v1::RunRow& row) {
  return row.state() != v1::RunState::QUEUED && row.state() != v1::RunState::RUNNING;
}

// That none of the wanted keys is among the `known` ones.
absl::Status NoSuchKey(const Target& target, const std::vector<std::string>& wanted,
                       const std::vector<std::string>& known) {
  std::vector<std::string> named;
  for (const std::string& key : wanted) {
    named.push_back(absl::StrCat(key, reflect::DidYouMean(key, known, " (", ")")));
  }
  const std::string id = Id(target.experiment);
  return absl::NotFoundError(absl::StrCat(
      target.cell ? absl::StrCat(id, "/", target.cell->cell, " has no ")
                  : absl::StrCat("no run of ", id, " has "),
      absl::StrJoin(named, " or "),
      known.empty() ? ": all ended without a point" : "; allowed: ", absl::StrJoin(known, ", ")));
}

// Notes which of the wanted keys have no points among those `seen`. NOT_FOUND if no run has any of
// them, unless all are still waited for: a script should not take a misspelt key for an empty one.
absl::Status CheckKeys(Connection* connection, const Context& context, const Target& target,
                       const std::vector<std::string>& wanted, const std::set<std::string>& seen) {
  const auto is_seen = [&](const std::string& key) { return seen.count(key) > 0; };
  if (std::all_of(wanted.begin(), wanted.end(), is_seen)) return absl::OkStatus();
  const absl::StatusOr<v1::ListRunsResponse> rows = Rows(connection, target);
  if (!rows.ok()) return rows.status();
  const auto list = ListKeys(
      connection, target.cell && !rows->rows().empty() ? rows->rows(0).run() : target.experiment);
  if (!list.ok()) return list.status();
  std::vector<std::string> known;
  for (const v1::MetricInfo& metric : list->metrics()) known.push_back(metric.key());
  const auto is_known = [&](const std::string& key) {
    return is_seen(key) || std::find(known.begin(), known.end(), key) != known.end();
  };
  const bool any = std::any_of(wanted.begin(), wanted.end(), is_known);
  const bool early =
      known.empty() && !std::all_of(rows->rows().begin(), rows->rows().end(), HasEnded);
  if (!any && !early) return NoSuchKey(target, wanted, known);
  for (const std::string& key : wanted) {
    if (is_seen(key)) continue;
    const std::string hint = is_known(key) ? "" : reflect::DidYouMean(key, known);
    context.console.Note(absl::StrCat("no points of ", key, early ? " yet" : hint));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> PrintPoints(const Options& options, const Target& target,
                                v1::QueryMetricsRequest request, const Context& context,
                                Connection* connection) {
  if (target.cell) {
    const absl::StatusOr<v1::RunRow> row = FindCell(connection, *target.cell);
    if (!row.ok()) return row.status();
    request.add_runs(row->run());
  } else {
    request.set_experiment(target.experiment);
  }
  std::ostream* out = context.console.out;
  const bool with_key = options.keys.size() != 1;
  // Before the first point, and where there is none, but not before an error.
  bool has_head = !options.csv;
  const auto print_head = [&] {
    if (has_head) return;
    *out << (with_key ? "cell,key,step,value\n" : "cell,step,value\n");
    has_head = true;
  };
  std::set<std::string> seen;
  const absl::Status status = connection->QueryMetrics(request, [&](const v1::Series& series) {
    v1::Series named = series;
    if (target.cell) named.set_cell(target.cell->cell);
    seen.insert(named.key());
    print_head();
    if (options.csv) {
      PrintCsv(named, with_key, out);
    } else {
      *out << ToJsonLine(named);
    }
    return out->good() ? absl::OkStatus() : absl::AbortedError("writing the output failed");
  });
  if (!status.ok()) return status;
  absl::Status keys = CheckKeys(connection, context, target, options.keys, seen);
  if (!keys.ok()) return keys;
  print_head();
  return kSuccess;
}

std::string OptionalText(bool has, double value) { return has ? Short(value) : "—"; }

absl::StatusOr<int> PrintSummaries(const Options& options, const Target& target,
                                   const Context& context, Connection* connection) {
  const absl::StatusOr<v1::ListRunsResponse> rows = Rows(connection, target);
  if (!rows.ok()) return rows.status();
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
  absl::Status known = CheckKeys(connection, context, target, options.keys, seen);
  if (!known.ok()) return known;
  PrintTable(context, table);
  return damaged > 0 ? kFailure : kSuccess;
}

absl::StatusOr<int> PrintKeys(const Options& options, const Target& target, const Context& context,
                              Connection* connection) {
  std::string parent = target.experiment;
  if (target.cell) {
    const absl::StatusOr<v1::RunRow> row = FindCell(connection, *target.cell);
    if (!row.ok()) return row.status();
    parent = row->run();
  }
  const absl::StatusOr<v1::ListMetricsResponse> list = ListKeys(connection, parent);
  if (!list.ok()) return list.status();
  if (options.json) return PrintJson(context, *list);
  Table table({{"key"}, {"points", true}});
  for (const v1::MetricInfo& metric : list->metrics()) {
    table.Add({metric.key(), text::Grouped(metric.count())});
  }
  return PrintTable(context, table);
}

// INVALID_ARGUMENT if these options make no sense together.
absl::Status CheckOptions(const Options& options) {
  if (options.csv && (options.json || options.list)) {
    return absl::InvalidArgumentError("--csv is for points, without --json or --list");
  }
  if (options.list && !options.keys.empty()) {
    return absl::InvalidArgumentError("--list lists every metric, without --key");
  }
  const bool of_points = options.first_step || options.last_step || options.max_points;
  if (of_points && (options.list || !(options.csv || options.json))) {
    return absl::InvalidArgumentError(
        "--first-step, --last-step and --max-points are for points: add --csv or --json, "
        "without --list");
  }
  return absl::OkStatus();
}

// The request for points, but for what they are of.
absl::StatusOr<v1::QueryMetricsRequest> MakeRequest(const Options& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  v1::QueryMetricsRequest request;
  for (const std::string& key : options.keys) request.add_keys(key);
  if (options.first_step) request.set_first_step(*options.first_step);
  if (options.last_step) request.set_last_step(*options.last_step);
  if (options.max_points) request.set_max_points(*options.max_points);
  return request;
}

absl::StatusOr<int> Metrics(const Options& options, const v1::QueryMetricsRequest& request,
                            const Context& context, Connection* connection) {
  const Target target = ParseTarget(options.target);
  if (options.list) return PrintKeys(options, target, context, connection);
  if (!options.csv && !options.json) return PrintSummaries(options, target, context, connection);
  return PrintPoints(options, target, request, context, connection);
}

}  // namespace

Action DefineMetrics(Command* command) {
  auto options = std::make_shared<Options>();
  command->Argument(&options->target, "EXP", "experiment, or EXP/CELL for one cell");
  command->Options(&options->keys, "--key,-k", "KEY",
                   "only this metric; repeatable; an error if no run has any of them [all]");
  command->Flag(&options->csv, "--csv",
                "all points: cell,step,value, or cell,key,step,value unless one --key is given");
  command->Flag(&options->json, "--json",
                "all points: one series a line, as the server sends them");
  command->Flag(&options->list, "--list", "only which metrics there are");
  command->Option(&options->first_step, "--first-step", "N", "points from this step on");
  command->Option(&options->last_step, "--last-step", "N", "points up to this step");
  command->Option(&options->max_points, "--max-points", "N",
                  "at most so many points a series, extremes kept (4 or more) [all]");
  command->Footer(
      "Numbers in CSV and JSON are exact; --first-step, --last-step and --max-points need "
      "one of the two.\n\n"
      "Example:\n  ablate metrics names-norm --key train/loss --csv > loss.csv");
  return WithServer(*command, options, MakeRequest, Metrics);
}

}  // namespace ablate::client
