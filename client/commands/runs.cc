// `ablate runs [EXP] [FILTER]`: lists cells and their runs, of one experiment or of all.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/found_runs.h"
#include "client/names.h"
#include "client/near_values.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

constexpr uint32_t kDefaultRuns = 100;  // of all experiments

struct RunsOptions {
  std::vector<std::string> what;
  std::string sort;
  std::optional<uint32_t> limit;
  std::string columns;
  bool archived = false;
  bool csv = false;
  bool json = false;
};

// The cells that the arguments ask for.
struct RunsWanted {
  std::string experiment;  // empty: all
  std::string filter;
};

// An experiment's name has none of these characters, and a filter has at least one.
bool IsFilter(const std::string& text) { return text.find_first_of("=<>:") != std::string::npos; }

absl::StatusOr<RunsWanted> ParseWhat(const RunsOptions& options) {
  if (options.csv && options.json) {
    return absl::InvalidArgumentError("--csv: can't be combined with --json; remove one of them");
  }
  RunsWanted wanted;
  for (const std::string& text : options.what) {
    std::string& part = IsFilter(text) ? wanted.filter : wanted.experiment;
    if (!part.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text,
                       "\" is too much; expected at most one experiment and one "
                       "filter. Put the filter in quotes"));
    }
    part = text;
  }
  return wanted;
}

std::string ColumnText(const google::protobuf::Value& value, bool exact) {
  if (value.has_number_value()) {
    return exact ? Exact(value.number_value()) : Short(value.number_value());
  }
  return value.has_string_value() ? value.string_value() : "";
}

// A column of the output: its title, and its text in a row.
struct RunColumn {
  std::string title;
  std::function<std::string(const v1::RunRow& row)> text;
  bool right = false;
  bool optional = false;
};

// Returns a column of the request.
RunColumn ValueColumn(const std::string& title, int index, bool exact) {
  const auto text = [index, exact](const v1::RunRow& row) {
    return index < row.values_size() ? ColumnText(row.values(index), exact) : "";
  };
  return {.title = title, .text = text, .right = true};
}

RunColumn StateColumn() {
  return {"state", [](const v1::RunRow& row) { return v1::RunState::Value_Name(row.state()); }};
}

// Returns the columns of every list; after them come the values, and then the failure.
std::vector<RunColumn> FixedColumns(bool with_experiment, bool brief) {
  std::vector<RunColumn> columns;
  if (with_experiment) {
    columns.push_back({"experiment", [](const v1::RunRow& row) { return Id(row.experiment()); }});
  }
  columns.push_back({"cell", [](const v1::RunRow& row) { return row.cell(); }});
  if (brief) return columns;
  columns.push_back({"run", [](const v1::RunRow& row) { return Id(row.run()); }});
  columns.push_back(StateColumn());
  const auto step = [](const v1::RunRow& row) {
    return row.steps() == 0 ? absl::StrCat(row.step()) : absl::StrCat(row.step(), "/", row.steps());
  };
  columns.push_back({.title = "step", .text = step, .right = true});
  return columns;
}

// Returns true if a diverged run has a value of one of these names, such as min(eval/loss), which
// summarise it as far as it went.
bool ShowsDiverged(const std::vector<std::string>& names, const v1::ListRunsResponse& runs) {
  const auto summarises = [](const std::string& name) {
    return absl::StartsWith(name, "min(") || absl::StartsWith(name, "max(") ||
           absl::StartsWith(name, "best(");
  };
  if (std::find(names.begin(), names.end(), "state") != names.end()) return false;
  return std::any_of(runs.rows().begin(), runs.rows().end(), [&](const v1::RunRow& row) {
    if (row.state() != v1::RunState::DIVERGED) return false;
    const size_t values = std::min(names.size(), static_cast<size_t>(row.values_size()));
    for (size_t i = 0; i < values; ++i) {
      if (summarises(names[i]) && row.values(static_cast<int>(i)).has_number_value()) return true;
    }
    return false;
  });
}

void PrintCsv(const std::vector<RunColumn>& columns, const v1::ListRunsResponse& runs,
              std::ostream* out) {
  const auto print = [&](const auto& text) {
    *out << absl::StrJoin(columns, ",", [&](std::string* line, const RunColumn& column) {
      line->append(text::CsvField(text(column)));
    }) << "\n";
  };
  print([](const RunColumn& column) { return column.title; });
  for (const v1::RunRow& row : runs.rows()) {
    print([&](const RunColumn& column) { return column.text(row); });
  }
}

int PrintRuns(const Context& context, const std::vector<RunColumn>& columns,
              const v1::ListRunsResponse& runs) {
  std::vector<Column> titles;
  for (const RunColumn& column : columns) {
    titles.push_back({column.title, column.right, column.optional});
  }
  Table table(std::move(titles));
  for (const v1::RunRow& row : runs.rows()) {
    std::vector<std::string> texts;
    for (const RunColumn& column : columns) texts.push_back(column.text(row));
    table.Add(std::move(texts));
  }
  return PrintTable(context, table);
}

absl::StatusOr<int> Runs(const RunsOptions& options, const RunsWanted& wanted,
                         const Context& context, Connection* connection) {
  const bool all = wanted.experiment.empty();
  v1::ListRunsRequest request;
  request.set_experiment("experiments/-");
  std::string primary;  // an experiment's list shows it
  if (!all) {
    const std::optional<CellName> part = ParseCellName(wanted.experiment);
    ASSIGN_OR_RETURN(const auto experiment,
                     FindExperiment(connection, part ? part->experiment : wanted.experiment));
    request.set_experiment(experiment.name());
    if (part) request.set_part(part->cell);
    primary = PrimaryMetric(experiment.spec());
  }
  request.set_archived(options.archived);
  request.set_filter(wanted.filter);
  request.set_order_by(options.sort);
  const bool brief = !options.columns.empty();
  std::vector<std::string> values;
  if (brief) {
    for (const absl::string_view name : absl::StrSplit(options.columns, ',')) {
      values.emplace_back(absl::StripAsciiWhitespace(name));
    }
  } else if (!options.sort.empty() && SortedKey(options.sort) != primary) {
    values = {SortedKey(options.sort)};
  }
  const bool names_experiment = brief && std::count(values.begin(), values.end(), "experiment") > 0;
  std::vector<RunColumn> columns = FixedColumns(all && !names_experiment, brief);
  for (const std::string& value : values) {
    columns.push_back(ValueColumn(value, request.columns_size(), options.csv));
    request.add_columns(value);
  }
  if (!brief && !primary.empty()) {
    const auto last = [&](const v1::RunRow& row) -> std::string {
      const v1::Summary* summary = FindSummary(row, primary);
      if (summary == nullptr || !summary->has_last()) return "";
      return options.csv ? Exact(summary->last()) : Short(summary->last());
    };
    columns.push_back({.title = primary, .text = last, .right = true});
  }
  if (!brief) {
    // A program's failure has its last lines, which only files have room for.
    const auto failure = [csv = options.csv](const v1::RunRow& row) {
      return csv ? row.failure() : FirstLine(row.failure());
    };
    columns.push_back({.title = "failure", .text = failure, .optional = true});
  }
  ASSIGN_OR_RETURN(const auto runs, ListFoundRuns(connection, request,
                                                  options.limit.value_or(all ? kDefaultRuns : 0)));
  if (runs.rows().empty()) {
    for (const std::string& near : NearValues(connection, request)) context.console.Note(near);
  }
  if (!runs.next_page_token().empty()) {
    context.console.Note("more runs match; -n 0 lists all");
  }
  if (options.json) return PrintJson(context, runs);
  if (brief && ShowsDiverged(values, runs)) columns.push_back(StateColumn());
  if (options.csv) {
    PrintCsv(columns, runs, &context.console.data());
    return kSuccess;
  }
  if (runs.rows().empty()) {
    context.console.Info("no run matches");
    return kSuccess;
  }
  return PrintRuns(context, columns, runs);
}

}  // namespace

Action DefineRuns(Command* command) {
  auto options = std::make_shared<RunsOptions>();
  command->OptionalArguments(
      &options->what, "EXP|FILTER",
      "An experiment, EXP/SETTING, EXP/@best or EXP/@chosen [all that you may see], and a "
      "condition, which has at least one of =, <, > and :");
  command->Option(&options->sort, "--sort", "KEY",
                  "Sort by KEY: 'eval/loss', 'eval/loss desc', or 'eval/loss best' for the best "
                  "first [newest experiment first, in grid order]");
  command->Option(&options->limit, "--limit,-n", "N",
                  "List at most N, 0 for all [all of EXP, else 100]");
  command->Option(&options->columns, "--columns", "A,B,…",
                  "Print the values of these names, as in a condition");
  command->Flag(&options->archived, "--archived", "List also cells of archived experiments");
  command->Flag(&options->csv, "--csv", "Print CSV");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "A condition compares fields with their defaults filled in, labels of axes, and metrics. It "
      "also has experiment, owner, tags, state, seed, parameters, created, started and ended. AND, "
      "OR, NOT and parentheses join comparisons. docs/reference/filters.md has the grammar.\n\n"
      "Examples:\n  ablate runs names-norm\n"
      "  ablate runs 'model.norm.placement = pre AND eval/loss < 2.4' --sort eval/loss\n"
      "  ablate runs names-norm 'state = failed OR state = diverged'\n"
      "  ablate runs 'tags:paper AND seed < 8'\n"
      "  ablate runs 'created > -2d' --columns 'seed,eval/loss,min(eval/loss)' --csv\n"
      "  ablate runs names-norm --json | jq '.rows[] | {cell, state}'");
  return WithServer(*command, options, ParseWhat, Runs);
}

}  // namespace ablate::client
