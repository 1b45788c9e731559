// `ablate runs EXP`: a line a cell.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "client/json.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/setting_table.h"
#include "client/table.h"

namespace ablate::client {
namespace {

struct Options {
  std::string experiment;
  bool json = false;
};

std::string LastValue(const v1::RunRow& row, const std::string& key) {
  const v1::Summary* summary = FindSummary(row, key);
  return summary != nullptr && summary->has_last() ? Short(summary->last()) : "";
}

void PrintTable(const Context& context, const v1::ListRunsResponse& runs,
                const std::string& primary) {
  bool any_failure = false;
  for (const v1::RunRow& row : runs.rows()) any_failure |= !row.failure().empty();
  std::vector<Column> columns = {{"cell"}, {"run"}, {"state"}, {"step", true}, {primary, true}};
  if (any_failure) columns.push_back({"failure"});
  Table table(std::move(columns));
  for (const v1::RunRow& row : runs.rows()) {
    table.Add({row.cell(), Id(row.run()), v1::RunState::Value_Name(row.state()),
               absl::StrCat(row.step(), "/", row.steps()), LastValue(row, primary), row.failure()});
  }
  *context.console.out << table.Render(context.console.table_width());
}

int Runs(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::Experiment> experiment =
      FindExperiment(connection->get(), options.experiment);
  if (!experiment.ok()) return Fail(context, experiment.status());
  const absl::StatusOr<v1::ListRunsResponse> runs =
      ListAllRuns(connection->get(), experiment->name());
  if (!runs.ok()) return Fail(context, runs.status());
  if (options.json) {
    *context.console.out << ToJson(*runs);
  } else {
    PrintTable(context, *runs, PrimaryMetric(experiment->spec()));
  }
  return kSuccess;
}

}  // namespace

void AddRuns(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("runs", "List an experiment's cells and their runs");
  command.Argument(&options->experiment, "EXP", "experiment");
  command.Flag(&options->json, "--json", "print the server's message, all pages as one");
  command.Footer("Example:\n  ablate runs names-norm --json | jq '.rows[] | {cell, state}'");
  command.Do([options](const Context& context) { return Runs(*options, context); });
}

}  // namespace ablate::client
