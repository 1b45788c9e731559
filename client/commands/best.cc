// `ablate best EXP`: lists the cells with the best values of a metric.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct BestOptions {
  std::string experiment;
  std::string by;
  std::optional<uint32_t> limit = 5;
  bool json = false;
};

// Returns the order of the list: the file may say which direction of its primary metric is better.
std::string BestFirst(const v1::ExperimentSpec& spec, const std::string& key) {
  if (key != PrimaryMetric(spec) || !spec.report().has_better()) return absl::StrCat(key, " best");
  return absl::StrCat(key, spec.report().better() == v1::Better::higher ? " desc" : " asc");
}

absl::StatusOr<int> Best(const BestOptions& options, const Context& context,
                         Connection* connection) {
  const absl::StatusOr<v1::Experiment> experiment = FindExperiment(connection, options.experiment);
  if (!experiment.ok()) return experiment.status();
  const std::string key = options.by.empty() ? PrimaryMetric(experiment->spec()) : options.by;
  v1::ListRunsRequest request;
  request.set_experiment(experiment->name());
  request.set_filter("state = done");
  request.set_order_by(BestFirst(experiment->spec(), key));
  request.add_columns(key);
  const auto runs =
      ListFirst(connection, &Connection::ListRuns, &v1::ListRunsResponse::mutable_rows,
                std::move(request), *options.limit);
  if (!runs.ok()) return runs.status();
  if (options.json) return PrintJson(context, *runs);
  Table table({{"cell"}, {"run"}, {key, true}});
  for (const v1::RunRow& row : runs->rows()) {
    const bool has_value = row.values_size() > 0 && row.values(0).has_number_value();
    table.Add({row.cell(), Id(row.run()), has_value ? Short(row.values(0).number_value()) : ""});
  }
  if (runs->rows().empty()) {
    return absl::NotFoundError(absl::StrCat("no run of ", Id(experiment->name()), " is done"));
  }
  return PrintTable(context, table);
}

}  // namespace

Action DefineBest(Command* command) {
  auto options = std::make_shared<BestOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Option(&options->by, "--by", "KEY",
                  "Metric, such as eval/loss or 'min(eval/loss)' [report.primary]");
  command->Option(&options->limit, "--limit,-n", "N", "List the best N, 0 for all [5]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Lists runs that are DONE. The best of many runs is partly luck: `ablate compare` tests "
      "differences over seeds.\n\n"
      "Example:\n  ablate best names-norm --by 'min(eval/loss)' -n 1");
  return WithServer(options, Best);
}

}  // namespace ablate::client
