// `ablate metrics EXP`: summaries as a table, or every point as CSV or JSON lines.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

struct MetricsOptions {
  std::string target;
  std::vector<std::string> keys;
  std::optional<uint32_t> first_step;
  std::optional<uint32_t> last_step;
  std::optional<uint32_t> max_points;
  bool csv = false;
  bool json = false;
  bool list = false;
};

struct MetricsTarget {
  std::string experiment;                    // experiments/ID or a prefix
  std::string part;                          // of EXP/PART; empty: all of it
  std::optional<v1::ListRunsResponse> rows;  // of the part
  std::set<std::string> cells;               // likewise

  bool Has(const std::string& cell) const { return part.empty() || cells.count(cell) > 0; }
};

absl::StatusOr<MetricsTarget> FindTarget(Connection* connection, const std::string& text) {
  const std::optional<CellName> part = ParseCellName(text);
  if (!part) return MetricsTarget{ExperimentName(text), {}, {}, {}};
  ASSIGN_OR_RETURN(auto rows, ListPart(connection, *part));
  MetricsTarget target{part->experiment, part->cell, std::move(rows), {}};
  for (const v1::RunRow& row : target.rows->rows()) target.cells.insert(row.cell());
  return target;
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

// The keys of an experiment or, if the target is one, of a cell.
absl::StatusOr<v1::ListMetricsResponse> ListKeys(Connection* connection,
                                                 const MetricsTarget& target) {
  v1::ListMetricsRequest request;
  request.set_parent(target.experiment);
  if (target.cells.size() == 1) request.set_cell(*target.cells.begin());
  return ListAll(connection, kListMetrics, &v1::ListMetricsResponse::mutable_metrics,
                 std::move(request));
}

absl::StatusOr<v1::ListRunsResponse> ListRows(Connection* connection, const MetricsTarget& target) {
  return target.rows ? *target.rows : ListAllRuns(connection, target.experiment);
}

// Reads the series of the target that the request asks for.
absl::Status Query(Connection* connection, const MetricsTarget& target,
                   v1::QueryMetricsRequest request, const OnMessage<v1::Series>& on_series) {
  request.set_experiment(target.experiment);
  if (target.cells.size() == 1) request.set_cell(*target.cells.begin());
  return connection->Stream(kQueryMetrics, request, [&](const v1::Series& series) {
    return target.Has(series.cell()) ? on_series(series) : absl::OkStatus();
  });
}

// Returns the known keys with the first parts of the wanted keys, up to the slash, or all if there
// are none. A first part is the label of an analysis, or a family that training records.
std::vector<std::string> OfTheirLabels(const std::vector<std::string>& wanted,
                                       const std::vector<std::string>& known) {
  std::set<std::string> labels;
  for (const std::string& key : wanted) labels.insert(key.substr(0, key.find('/')));
  std::vector<std::string> keys;
  std::copy_if(known.begin(), known.end(), std::back_inserter(keys), [&](const std::string& key) {
    return labels.count(key.substr(0, key.find('/'))) > 0;
  });
  return keys.empty() ? known : keys;
}

// Most keys that an error lists.
constexpr size_t kShownKeys = 8;

// Returns the error that none of the wanted keys is among the `known` ones.
absl::Status NoSuchKey(const MetricsTarget& target, const std::vector<std::string>& wanted,
                       const std::vector<std::string>& known) {
  std::vector<std::string> named;
  for (const std::string& key : wanted) {
    named.push_back(absl::StrCat(key, reflect::DidYouMean(key, known, " (", ")")));
  }
  std::vector<std::string> allowed = OfTheirLabels(wanted, known);
  const size_t more = allowed.size() - std::min(allowed.size(), kShownKeys);
  if (more > 0) allowed.resize(kShownKeys);
  const std::string id = Id(target.experiment);
  return absl::NotFoundError(absl::StrCat(
      target.part.empty() ? absl::StrCat("no run of ", id, " has ")
                          : absl::StrCat(id, "/", target.part, " has no "),
      absl::StrJoin(named, " or "), known.empty() ? ": all ended without a point" : "; expected ",
      absl::StrJoin(allowed, ", "),
      more == 0 ? ""
                : absl::StrCat(" or one of ", more, " more, which `ablate metrics ", id,
                               target.part.empty() ? "" : "/", target.part, " --list` prints")));
}

// Notes which of the wanted keys have no points among those `seen`. NOT_FOUND if no run has any of
// them, unless all are still waited for: a script should not take a misspelt key for an empty one.
absl::Status CheckKeys(Connection* connection, const Context& context, const MetricsTarget& target,
                       const std::vector<std::string>& wanted, const std::set<std::string>& seen) {
  const auto is_seen = [&](const std::string& key) { return seen.count(key) > 0; };
  if (std::all_of(wanted.begin(), wanted.end(), is_seen)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::ListRunsResponse rows, ListRows(connection, target));
  ASSIGN_OR_RETURN(const auto list, ListKeys(connection, target));
  std::vector<std::string> known;
  for (const v1::MetricInfo& metric : list.metrics()) known.push_back(metric.key());
  const auto is_known = [&](const std::string& key) {
    return is_seen(key) || std::find(known.begin(), known.end(), key) != known.end();
  };
  const bool any = std::any_of(wanted.begin(), wanted.end(), is_known);
  const bool early =
      known.empty() && !std::all_of(rows.rows().begin(), rows.rows().end(),
                                    [](const v1::RunRow& row) { return HasEnded(row.state()); });
  if (!any && !early) return NoSuchKey(target, wanted, known);
  for (const std::string& key : wanted) {
    if (is_seen(key)) continue;
    const std::string hint = is_known(key) ? "" : reflect::DidYouMean(key, known);
    context.console.Note(absl::StrCat("no points of ", key, early ? " yet" : hint));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> PrintPoints(const MetricsOptions& options, const MetricsTarget& target,
                                const v1::QueryMetricsRequest& request, const Context& context,
                                Connection* connection) {
  std::ostream* out = &context.console.data();
  const bool with_key = options.keys.size() != 1;
  // The head comes before the first point, or alone if there is none, but not before an error.
  bool has_head = !options.csv;
  const auto print_head = [&] {
    if (has_head) return;
    *out << (with_key ? "cell,key,step,value\n" : "cell,step,value\n");
    has_head = true;
  };
  std::set<std::string> seen;
  RETURN_IF_ERROR(Query(connection, target, request, [&](const v1::Series& series) {
    seen.insert(series.key());
    print_head();
    if (options.csv) {
      PrintCsv(series, with_key, out);
    } else {
      *out << ToJsonLine(series);
    }
    return out->good() ? absl::OkStatus() : absl::AbortedError("writing the output failed");
  }));
  RETURN_IF_ERROR(CheckKeys(connection, context, target, options.keys, seen));
  print_head();
  return kSuccess;
}

std::string OptionalText(bool has, double value) { return has ? Short(value) : "—"; }

bool IsWanted(const std::string& key, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), key) != wanted.end();
}

// Returns true if runs recorded all of these keys, so that none belongs to an analysis.
bool AllRecorded(const std::vector<std::string>& keys, const v1::ListRunsResponse& rows) {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return std::any_of(rows.rows().begin(), rows.rows().end(),
                       [&](const v1::RunRow& row) { return FindSummary(row, key) != nullptr; });
  });
}

// Takes the points of a series, which are finite, into the summary of all of them.
void AddPoints(const v1::Series& series, v1::Summary* summary) {
  for (const double value : series.values()) {
    const auto before = static_cast<double>(summary->count());
    if (before == 0) summary->set_first(value);
    summary->set_last(value);
    summary->set_min(before == 0 ? value : std::min(summary->min(), value));
    summary->set_max(before == 0 ? value : std::max(summary->max(), value));
    summary->set_mean(summary->mean() + (value - summary->mean()) / (before + 1));
    summary->set_count(summary->count() + 1);
  }
}

// By cell and key.
using Summaries = std::map<std::string, std::map<std::string, v1::Summary>>;

// Returns summaries of the wanted numbers of analyses. No run's row has them: they belong to the
// experiment, one per checkpoint.
absl::StatusOr<Summaries> SummariesOfAnalyses(const std::vector<std::string>& wanted,
                                              const MetricsTarget& target, Connection* connection) {
  constexpr int kMostKeys = 1000;  // of a query
  ASSIGN_OR_RETURN(const v1::ListMetricsResponse list, ListKeys(connection, target));
  Summaries summaries;
  v1::QueryMetricsRequest request;
  const auto query = [&] {
    if (request.keys().empty()) return absl::OkStatus();
    absl::Status status = Query(connection, target, request, [&](const v1::Series& series) {
      v1::Summary& summary = summaries[series.cell()][series.key()];
      summary.set_key(series.key());
      AddPoints(series, &summary);
      return absl::OkStatus();
    });
    request.clear_keys();
    return status;
  };
  for (const v1::MetricInfo& metric : list.metrics()) {
    if (!metric.of_analysis() || !IsWanted(metric.key(), wanted)) continue;
    request.add_keys(metric.key());
    if (request.keys_size() < kMostKeys) continue;
    if (absl::Status queried = query(); !queried.ok()) return queried;
  }
  RETURN_IF_ERROR(query());
  return summaries;
}

absl::StatusOr<int> PrintSummaries(const MetricsOptions& options, const MetricsTarget& target,
                                   const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListRunsResponse rows, ListRows(connection, target));
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
  bool without_last = false;
  const auto add = [&](const std::string& cell, const v1::Summary& summary) {
    if (!IsWanted(summary.key(), options.keys)) return;
    seen.insert(summary.key());
    without_last = without_last || !summary.has_last();
    table.Add({cell, summary.key(), text::Grouped(summary.count()),
               OptionalText(summary.has_first(), summary.first()),
               OptionalText(summary.has_last(), summary.last()),
               OptionalText(summary.has_min(), summary.min()),
               OptionalText(summary.has_max(), summary.max()),
               OptionalText(summary.has_mean(), summary.mean()),
               text::Grouped(summary.nonfinite())});
  };
  absl::StatusOr<Summaries> of_analyses = Summaries();
  if (options.keys.empty() || !AllRecorded(options.keys, rows)) {
    of_analyses = SummariesOfAnalyses(options.keys, target, connection);
  }
  if (!of_analyses.ok()) return of_analyses.status();
  int damaged = 0;
  for (const v1::RunRow& row : rows.rows()) {
    // A run that ended well has a failure only if its summaries can't be read.
    const bool ended = row.state() == v1::RunState::DONE || row.state() == v1::RunState::DIVERGED;
    if (ended && !row.failure().empty()) {
      context.console.Error(row.failure());
      ++damaged;
    }
    for (const v1::Summary& summary : row.summaries()) add(row.cell(), summary);
    for (const auto& [key, summary] : (*of_analyses)[row.cell()]) {
      // The primary metric is in the row, whatever it is of.
      if (FindSummary(row, key) == nullptr) add(row.cell(), summary);
    }
  }
  RETURN_IF_ERROR(CheckKeys(connection, context, target, options.keys, seen));
  PrintTable(context, table);
  if (without_last) {
    context.console.Note("without a last value: the last point isn't finite, or the run diverged");
  }
  return damaged > 0 ? kFailure : kSuccess;
}

absl::StatusOr<int> PrintKeys(const MetricsOptions& options, const MetricsTarget& target,
                              const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListMetricsResponse list, ListKeys(connection, target));
  if (options.json) return PrintJson(context, list);
  Table table({{"key"}, {"points", true}});
  for (const v1::MetricInfo& metric : list.metrics()) {
    table.Add({metric.key(), text::Grouped(metric.count())});
  }
  return PrintTable(context, table);
}

// INVALID_ARGUMENT if these options make no sense together.
absl::Status CheckOptions(const MetricsOptions& options) {
  if (options.csv && (options.json || options.list)) {
    return absl::InvalidArgumentError(
        "--csv: can't be combined with --json or --list; remove one of them");
  }
  if (options.list && !options.keys.empty()) {
    return absl::InvalidArgumentError("--list: can't be combined with --key; remove one of them");
  }
  const bool of_points = options.first_step || options.last_step || options.max_points;
  if (of_points && (options.list || !(options.csv || options.json))) {
    return absl::InvalidArgumentError(
        "--first-step, --last-step, --max-points: need points; add --csv or --json, and remove "
        "--list");
  }
  return absl::OkStatus();
}

// Returns the request for points, without its target.
absl::StatusOr<v1::QueryMetricsRequest> MakeRequest(const MetricsOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  v1::QueryMetricsRequest request;
  for (const std::string& key : options.keys) request.add_keys(key);
  if (options.first_step) request.set_first_step(*options.first_step);
  if (options.last_step) request.set_last_step(*options.last_step);
  if (options.max_points) request.set_max_points(*options.max_points);
  return request;
}

absl::StatusOr<int> Metrics(const MetricsOptions& options, const v1::QueryMetricsRequest& request,
                            const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const auto target, FindTarget(connection, options.target));
  if (options.list) return PrintKeys(options, target, context, connection);
  if (!options.csv && !options.json) return PrintSummaries(options, target, context, connection);
  return PrintPoints(options, target, request, context, connection);
}

}  // namespace

Action DefineMetrics(Command* command) {
  auto options = std::make_shared<MetricsOptions>();
  command->Argument(&options->target, "EXP",
                    "Experiment, EXP/SETTING with all its seeds, or EXP/CELL");
  command->Options(&options->keys, "--key,-k", "KEY",
                   "Print only this metric; an error if no run has any of those given [all]");
  command->Flag(&options->csv, "--csv",
                "Print every point as cell,step,value if one --key is given, else as "
                "cell,key,step,value");
  command->Flag(&options->json, "--json", "Print every point, one series per line of JSON");
  command->Flag(&options->list, "--list", "List the metrics without their values");
  command->Option(&options->first_step, "--first-step", "N", "Print points from step N on");
  command->Option(&options->last_step, "--last-step", "N", "Print points up to step N");
  command->Option(&options->max_points, "--max-points", "N",
                  "Print at most N points per series, keeping its extremes, 4 or more [all]");
  command->Footer(
      "The numbers of analyses are metrics, too: LABEL/NUMBER, with a point for each checkpoint. "
      "Numbers in CSV and JSON are exact. --first-step, --last-step and --max-points need --csv or "
      "--json.\n\n"
      "Example:\n  ablate metrics names-norm --key train/loss --csv > loss.csv");
  return WithServer(*command, options, MakeRequest, Metrics);
}

}  // namespace ablate::client
