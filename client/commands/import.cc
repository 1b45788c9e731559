// `ablate import PATH…`: keeps results of other tools as an experiment.
#include "client/commands/import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

struct ImportCommandOptions {
  ReadingOptions reading;
  std::string name, question, note;
  std::vector<std::string> tags;
  bool is_private = false;
  bool json = false;
};

absl::Status WrongOption(const char* option, const std::string& value, const char* allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", reflect::Quoted(value), " is invalid; expected ", allowed));
}

// Divides lists at commas.
std::vector<std::string> Divided(const std::vector<std::string>& lists) {
  std::vector<std::string> values;
  for (const std::string& list : lists) {
    for (const absl::string_view value : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
      values.emplace_back(absl::StripAsciiWhitespace(value));
    }
  }
  return values;
}

absl::Status ReadAt(const std::string& at, v1::ImportOptions* options) {
  uint32_t step = 0;
  if (at.empty() || at == "last") return absl::OkStatus();
  if (at == "best") {
    options->set_best(true);
  } else if (absl::SimpleAtoi(at, &step)) {
    options->set_at(step);
  } else {
    return WrongOption("--at", at, "last, best, or a step");
  }
  return absl::OkStatus();
}

// Returns a name of letters, digits and hyphens for an experiment.
std::string ExperimentNameOf(const std::string& path) {
  std::string name;
  for (const char c : std::filesystem::path(path).stem().string()) {
    const bool good = absl::ascii_isalnum(c);
    if (good) name.push_back(absl::ascii_tolower(c));
    if (!good && !name.empty() && name.back() != '-') name.push_back('-');
  }
  if (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty()) return "results";
  if (!absl::ascii_isalpha(name.front())) name.insert(0, "results-");
  // Names of resources have these words before their IDs.
  if (name == "runs" || name == "experiments") name += "-imported";
  return name.substr(0, 40);
}

absl::StatusOr<int> Import(const ImportCommandOptions& options, const v1::ImportOptions& request,
                           const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(auto messages, ReadMessages(options.reading, request, context));
  ASSIGN_OR_RETURN(const v1::ImportResponse response,
                   SendResults(std::move(messages), request, connection));
  for (const std::string& note : response.notes()) context.console.Note(note);
  if (options.json) return PrintJson(context, response);
  const std::string id = Id(response.experiment());
  *context.console.out << id << "   " << Count(response.runs(), "run") << " (" << response.reused()
                       << " reused)\n";
  if (response.repeated()) context.console.Note(absl::StrCat(id, " has the same results already"));
  return kSuccess;
}

absl::StatusOr<v1::ImportOptions> MakeRequest(const ImportCommandOptions& options) {
  ASSIGN_OR_RETURN(v1::ImportOptions request, MakeImportOptions(options.reading));
  IdentifyImport(options.reading, options.name, &request);
  request.set_question(options.question);
  request.set_note(options.note);
  request.mutable_tags()->Add(options.tags.begin(), options.tags.end());
  request.set_private_(options.is_private);
  return request;
}

}  // namespace

void AddReadingOptions(Command* command, ReadingOptions* options) {
  command->Options(&options->settings, "--setting", "KEYS",
                   "Compare the settings with these keys, divided by commas [those that vary]");
  command->Option(&options->source.table.seed, "--seed", "KEY", "Key of the seed [seed]");
  command->Option(&options->source.table.metric, "--metric,-k", "KEY",
                  "Metric of the verdict [the only one]");
  command->Option(&options->at, "--at", "STEP", "Value of a run: last, best, or at STEP [last]");
  command->Option(&options->better, "--better", "DIRECTION",
                  "Better values: lower or higher [by the metric's name, such as val_loss]");
  command->Options(&options->tune, "--tune", "KEYS",
                   "Settings that are tuned, such as a learning rate");
  command->Options(&options->baseline, "--baseline", "KEY=VALUE",
                   "Use this value of a setting as the baseline [the first; of numbers the least]");
  command->Option(&options->margin, "--margin", "MARGIN",
                  "Equivalence margin, in the metric's unit, above 0");
  command->Option(&options->names, "--names", "PATTERN",
                  "Read settings from names of runs, such as {norm}-s{seed}");
  command->Option(&options->source.table.item, "--item", "KEY",
                  "Column of items, such as documents, that are paired in place of seeds");
  command->Option(&options->source.table.group, "--group", "KEY",
                  "Column of groups of items that depend on each other");
  command->Option(&options->source.tool, "--tool", "TOOL",
                  "Tool that wrote the files, such as wandb [found out]");
  options->source.python = "python3";
  command->Option(&options->source.python, "--python", "PROGRAM",
                  "Python that has the package ablate, for files of tools [python3]");
}

absl::StatusOr<v1::ImportOptions> MakeImportOptions(const ReadingOptions& options) {
  v1::ImportOptions request;
  for (const std::string& key : Divided(options.settings)) request.add_settings(key);
  for (const std::string& key : Divided(options.tune)) request.add_tune(key);
  request.set_seed(options.source.table.seed);
  request.set_metric(options.source.table.metric);
  request.set_names(options.names);
  RETURN_IF_ERROR(ReadAt(options.at, &request));
  v1::Better::Value better = v1::Better::unspecified;
  const bool known = options.better.empty() || (v1::Better::Value_Parse(options.better, &better) &&
                                                better != v1::Better::unspecified);
  if (!known) return WrongOption("--better", options.better, "lower or higher");
  request.set_better(better);
  if (!options.source.table.group.empty() && options.source.table.item.empty()) {
    return WrongOption("--group", options.source.table.group, "--item with it");
  }
  if (options.margin.has_value()) {
    if (!(*options.margin > 0)) {
      return WrongOption("--margin", absl::StrCat(*options.margin), "a number above 0");
    }
    request.set_margin(*options.margin);
  }
  for (const std::string& baseline : options.baseline) {
    const size_t equals = baseline.find('=');
    const bool named = equals != std::string::npos;
    const std::string key = named ? baseline.substr(0, equals) : "";
    (*request.mutable_baseline())[key] = named ? baseline.substr(equals + 1) : baseline;
  }
  return request;
}

absl::StatusOr<std::vector<v1::ImportRequest>> ReadMessages(const ReadingOptions& reading,
                                                            const v1::ImportOptions& options,
                                                            const Context& context) {
  SourceOptions source = reading.source;
  source.table.settings = {options.settings().begin(), options.settings().end()};
  return ReadResults(source, context);
}

absl::StatusOr<v1::ImportResponse> SendResults(std::vector<v1::ImportRequest> messages,
                                               const v1::ImportOptions& options,
                                               Connection* connection) {
  v1::ImportOptions* first = messages.front().mutable_options();
  v1::ImportOptions all = options;
  all.set_source(first->source());
  all.mutable_notes()->Swap(first->mutable_notes());
  *first = std::move(all);
  size_t next = 0;
  return connection->Send(kImport, [&]() -> absl::StatusOr<std::optional<v1::ImportRequest>> {
    if (next == messages.size()) return std::nullopt;
    return std::move(messages[next++]);
  });
}

void IdentifyImport(const ReadingOptions& reading, const std::string& name,
                    v1::ImportOptions* options) {
  options->set_request_id(process::RandomId());
  options->set_name(name.empty() ? ExperimentNameOf(reading.source.paths.front()) : name);
}

Action DefineImport(Command* command) {
  auto options = std::make_shared<ImportCommandOptions>();
  command->Arguments(&options->reading.source.paths, "PATH",
                     "Files or folders of one tool; - is CSV from standard input");
  AddReadingOptions(command, &options->reading);
  command->Option(&options->name, "--name", "NAME", "Name of the experiment [of the first file]");
  command->Option(&options->question, "--question", "TEXT", "Question that it answers");
  command->Option(&options->note, "--note", "TEXT", "Note on the experiment");
  command->Options(&options->tags, "--tag", "TAG", "Tag the experiment");
  command->Flag(&options->is_private, "--private", "Show the experiment to nobody else");
  command->Flag(&options->json, "--json", "Print the server's message as JSON");
  command->Footer(
      "CSV and JSON lines are read as they are; files of W&B, MLflow, TensorBoard, Optuna and "
      "other tools by the Python package (docs/reference/imported-results.md). Runs that haven't "
      "finished, or repeat another one, are left out, and the command says so. It never guesses "
      "between two readings: the error names the option that tells them apart.\n\n"
      "Examples:\n  ablate import runs.csv --setting norm --metric val_loss\n"
      "  ablate import wandb/ --setting model.norm --metric eval/loss --at best\n"
      "  ablate import logs/ --names '{norm}/seed{seed}' --metric loss");
  return WithServer(*command, options, MakeRequest, Import);
}

}  // namespace ablate::client
