// `ablate best EXP`: lists the cells with the best values of a metric.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/found_runs.h"
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

// Returns the order of the list. `by` may have a direction, and the file may say which direction of
// its primary metric is better.
std::string BestFirst(const v1::ExperimentSpec& spec, const std::string& by,
                      const std::string& key) {
  if (by != key) return by;
  if (key != PrimaryMetric(spec) || !spec.report().has_better()) return absl::StrCat(key, " best");
  return absl::StrCat(key, spec.report().better() == v1::Better::higher ? " desc" : " asc");
}

// Says what --by takes instead of a key that the server can't sort by.
absl::Status ExplainOrder(const absl::Status& status, const BestOptions& options,
                          const std::string& key) {
  if (!absl::IsInvalidArgument(status)) return status;
  if (absl::StrContains(status.message(), "neither direction")) {
    return absl::InvalidArgumentError(absl::StrCat("neither direction of ", key,
                                                   " is better; say which is first: --by '", key,
                                                   " desc' or --by '", key, " asc'"));
  }
  if (!options.by.empty()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("runs can't be sorted by report.primary, ", key,
                   ". Name a metric that training records, such as --by eval/loss"));
}

absl::StatusOr<int> Best(const BestOptions& options, const Context& context,
                         Connection* connection) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, FindExperiment(connection, options.experiment));
  const std::string by = options.by.empty() ? PrimaryMetric(experiment.spec()) : options.by;
  const std::string key = SortedKey(by);
  v1::ListRunsRequest request;
  request.set_experiment(experiment.name());
  request.set_filter(absl::StrCat("state = done AND ", key, ":*"));
  request.set_order_by(BestFirst(experiment.spec(), by, key));
  request.add_columns(key);
  const auto runs = ListFoundRuns(connection, std::move(request), *options.limit);
  if (!runs.ok()) return ExplainOrder(runs.status(), options, key);
  if (runs->rows().empty()) {
    return absl::NotFoundError(
        absl::StrCat("no run of ", Id(experiment.name()), " is done and has ", key));
  }
  if (options.json) return PrintJson(context, *runs);
  Table table({{"cell"}, {"run"}, {key, true}});
  for (const v1::RunRow& row : runs->rows()) {
    const bool has_value = row.values_size() > 0 && row.values(0).has_number_value();
    table.Add({row.cell(), Id(row.run()), has_value ? Short(row.values(0).number_value()) : ""});
  }
  return PrintTable(context, table);
}

}  // namespace

Action DefineBest(Command* command) {
  auto options = std::make_shared<BestOptions>();
  command->Argument(&options->experiment, "EXP", kExperimentHelp);
  command->Option(&options->by, "--by", "KEY",
                  "Metric, such as eval/loss, 'min(eval/loss)' or 'train/gradient_norm desc' "
                  "[report.primary]");
  command->Option(&options->limit, "--limit,-n", "N", "List the best N, 0 for all [5]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Lists runs that are DONE. The best of many runs is partly luck: `ablate compare` tests "
      "differences over seeds.\n\n"
      "Example:\n  ablate best names-norm --by 'min(eval/loss)' -n 1");
  return WithServer(options, Best);
}

}  // namespace ablate::client
