// `ablate runs EXP`: a line a cell.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct RunsOptions {
  std::string experiment;
  bool json = false;
};

std::string LastValue(const v1::RunRow& row, const std::string& key) {
  const v1::Summary* summary = FindSummary(row, key);
  return summary != nullptr && summary->has_last() ? Short(summary->last()) : "";
}

Table MakeTable(const v1::ListRunsResponse& runs, const std::string& primary) {
  Table table({{"cell"},
               {"run"},
               {"state"},
               {"step", true},
               {primary, true},
               {"failure", false, /*optional=*/true}});
  for (const v1::RunRow& row : runs.rows()) {
    table.Add({row.cell(), Id(row.run()), v1::RunState::Value_Name(row.state()),
               absl::StrCat(row.step(), "/", row.steps()), LastValue(row, primary), row.failure()});
  }
  return table;
}

absl::StatusOr<int> Runs(const RunsOptions& options, const Context& context,
                         Connection* connection) {
  const absl::StatusOr<v1::Experiment> experiment = FindExperiment(connection, options.experiment);
  if (!experiment.ok()) return experiment.status();
  const absl::StatusOr<v1::ListRunsResponse> runs = ListAllRuns(connection, experiment->name());
  if (!runs.ok()) return runs.status();
  if (options.json) return PrintJson(context, *runs);
  return PrintTable(context, MakeTable(*runs, PrimaryMetric(experiment->spec())));
}

}  // namespace

Action DefineRuns(Command* command) {
  auto options = std::make_shared<RunsOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate runs names-norm --json | jq '.rows[] | {cell, state}'");
  return WithServer(options, Runs);
}

}  // namespace ablate::client
