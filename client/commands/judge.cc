// `ablate judge PATH…`: a verdict for programs, by exit code.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/commands/compare.h"
#include "client/commands/import.h"
#include "client/gate.h"
#include "client/names.h"
#include "client/output/wrap.h"

namespace ablate::client {
namespace {

struct JudgeOptions {
  ReadingOptions reading;
  GateOptions gate;
  bool keep = false;
  std::string name;
  bool json = false;
};

// Returns true if the only path is an experiment's name and no file's.
bool NamesExperiment(const JudgeOptions& options) {
  const std::vector<std::string>& paths = options.reading.source.paths;
  std::error_code error;
  return paths.size() == 1 && paths[0] != "-" && !std::filesystem::exists(paths[0], error) &&
         paths[0].find_first_of("/.") == std::string::npos;
}

absl::StatusOr<v1::Comparison> CompareStored(const JudgeOptions& options, Connection* connection) {
  const ReadingOptions& reading = options.reading;
  if (!reading.settings.empty() || !reading.names.empty() || !reading.better.empty() ||
      !reading.tune.empty() || reading.margin.has_value() || options.keep ||
      !reading.source.table.seed.empty() || !reading.source.table.item.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reading.source.paths[0],
                     " isn't a file but an experiment, which has its own "
                     "settings; expected --metric, --at and --baseline only"));
  }
  ComparisonOptions compare;
  compare.experiment = reading.source.paths[0];
  compare.key = reading.source.table.metric;
  compare.baseline = reading.baseline;
  if (reading.at != "last") compare.at = reading.at;
  ASSIGN_OR_RETURN(v1::CompareRequest request, MakeCompareRequest(compare));
  ASSIGN_OR_RETURN(*request.mutable_gate(), MakeGateRequest(options.gate));
  return connection->Call(kCompare, request);
}

absl::StatusOr<v1::Comparison> CompareFiles(const JudgeOptions& options, const Context& context,
                                            Connection* connection) {
  const ReadingOptions& reading = options.reading;
  ASSIGN_OR_RETURN(v1::ImportOptions request, MakeImportOptions(reading));
  ASSIGN_OR_RETURN(*request.mutable_gate(), MakeGateRequest(options.gate));
  request.set_validate_only(true);
  ASSIGN_OR_RETURN(const auto messages, ReadMessages(reading, request, context));
  ASSIGN_OR_RETURN(const v1::ImportResponse judged, SendResults(messages, request, connection));
  for (const std::string& note : judged.notes()) context.console.Note(note);
  if (!options.keep) return judged.comparison();
  request.set_validate_only(false);
  IdentifyImport(reading, options.name, &request);
  ASSIGN_OR_RETURN(const v1::ImportResponse kept, SendResults(messages, request, connection));
  context.console.Note(absl::StrCat("kept as ", Id(kept.experiment())));
  return judged.comparison();
}

absl::StatusOr<int> Judge(const JudgeOptions& options, const Context& context,
                          Connection* connection) {
  ASSIGN_OR_RETURN(const v1::Comparison comparison,
                   NamesExperiment(options) ? CompareStored(options, connection)
                                            : CompareFiles(options, context, connection));
  return PrintGate(comparison, options.gate, options.json, context);
}

}  // namespace

Action DefineJudge(Command* command) {
  auto options = std::make_shared<JudgeOptions>();
  command->Arguments(&options->reading.source.paths, "PATH",
                     "Files or folders as in `ablate import`, or an experiment");
  AddReadingOptions(command, &options->reading);
  AddGateOptions(command, &options->gate);
  command->Flag(&options->keep, "--keep", "Keep the results as an experiment, too");
  command->Option(&options->name, "--name", "NAME", "Its name, with --keep [of the first file]");
  command->Flag(&options->json, "--json", "Print the comparison as JSON, with its gate");
  command->Footer(
      absl::StrCat("Nothing is kept without --keep. ", kGateExitCodes,
                   "\n\nExamples:\n  ablate judge runs.csv --setting norm --metric val_loss\n"
                   "  ablate judge samples_a.jsonl samples_b.jsonl\n"
                   "  ablate judge results.csv --looks --json && git commit -a\n"
                   "  ablate judge results.csv --session session.json"));
  return [options](const Context& context) {
    return RunGate(context,
                   [&](Connection* connection) { return Judge(*options, context, connection); });
  };
}

}  // namespace ablate::client
