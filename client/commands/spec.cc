// `ablate spec EXP[/CELL]`: prints an experiment file.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "proto/reflect/spec_yaml.h"

namespace ablate::client {
namespace {

struct SpecOptions {
  std::string target;
  bool json = false;
};

// Returns an experiment of one cell's run alone, with every default written out.
absl::StatusOr<v1::ExperimentSpec> SpecOfCell(const CellName& cell, Connection* connection) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment,
                   FindExperiment(connection, Id(cell.experiment)));
  ASSIGN_OR_RETURN(const v1::RunRow row, FindCell(connection, {experiment.name(), cell.cell}));
  v1::GetRunRequest request;
  request.set_name(row.run());
  ASSIGN_OR_RETURN(v1::Run run, connection->Call(kGetRun, request));
  v1::ExperimentSpec spec;
  spec.set_name(experiment.spec().name());
  *spec.mutable_base() = std::move(*run.mutable_resolved_spec()->mutable_spec());
  // The initial model decides.
  if (spec.base().has_model_from()) spec.mutable_base()->mutable_model()->clear_init();
  spec.mutable_seeds()->add_list(run.resolved_spec().seed());
  return spec;
}

absl::StatusOr<v1::ExperimentSpec> SpecOf(const std::string& target, Connection* connection) {
  if (const auto cell = ParseCellName(target)) return SpecOfCell(*cell, connection);
  ASSIGN_OR_RETURN(v1::Experiment experiment, FindExperiment(connection, target));
  return std::move(*experiment.mutable_spec());
}

absl::StatusOr<int> Spec(const SpecOptions& options, const Context& context,
                         Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ExperimentSpec spec, SpecOf(options.target, connection));
  if (options.json) return PrintJson(context, spec);
  context.console.data() << reflect::SpecYaml(spec);
  return kSuccess;
}

}  // namespace

Action DefineSpec(Command* command) {
  auto options = std::make_shared<SpecOptions>();
  command->Argument(&options->target, "EXP[/CELL]", "Experiment, or one cell of it");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "An experiment is printed as it was submitted, with --set and --seeds applied and data sets "
      "by their names on the server. A cell is printed as the file of its run alone, with every "
      "default. `ablate submit` takes both, and reuses the stored runs.\n\n"
      "Example:\n  ablate spec names-norm/pre-lr0.01-s42 > pre.yaml");
  return WithServer(options, Spec);
}

}  // namespace ablate::client
