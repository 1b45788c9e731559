// `ablate analyze KIND EXP/CELL…`: numbers and arrays computed of trained models.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/analysis_kinds.h"
#include "client/command_table.h"
#include "client/download.h"
#include "client/follow.h"
#include "client/follow_analyses.h"
#include "client/names.h"
#include "client/output/analysis_text.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr int32_t kLastStep = -1;

struct AnalyzeOptions {
  std::string kind;
  std::vector<std::string> targets;
  std::vector<std::string> set;
  std::string at;
  std::optional<uint32_t> tokens;
  std::optional<uint32_t> documents;
  std::string prompt;
  std::string dataset;
  std::optional<uint32_t> seed;
  std::string label;
  Output output;
  bool dry_run = false;
  bool no_wait = false;
  bool json = false;
};

// A model that was asked for.
struct AnalysisTarget {
  std::string label;
  v1::AnalysisSubject subject;
};

// The experiments of other users that don't get the numbers as metrics, each once.
void NoteUnlabelled(const Context& context, const std::vector<LabelledResponse>& responses) {
  std::set<std::string> experiments;
  for (const LabelledResponse& one : responses) {
    for (const std::string& name : one.response.unlabelled()) experiments.insert(Id(name));
  }
  if (experiments.empty()) return;
  context.console.Note(absl::StrCat("the numbers don't become metrics of ",
                                    absl::StrJoin(experiments, ", "),
                                    ": only the experiment's owner or an admin labels them"));
}

// Says which labels nobody asked for, because another analysis has the kind's name; each once.
void NoteLabels(const Context& context, const AnalyzeOptions& options,
                const std::vector<LabelledResponse>& responses) {
  std::set<std::string> noted;
  for (const LabelledResponse& one : responses) {
    const std::string& label = one.response.label();
    const std::string kind = AnalysisKindName(one.response.analysis().analysis());
    if (label.empty() || label == kind || !options.label.empty()) continue;
    if (!noted.insert(label).second) continue;
    context.console.Note(absl::StrCat("the numbers are ", label, "/…, because another analysis is ",
                                      kind, "; --label gives a name of your own"));
  }
}

// A request for one analysis.
struct LabelledRequest {
  std::string label;
  v1::CreateAnalysisRequest request;
  std::vector<std::string> models = {};  // labels of its subjects if it compares several
};

const AnalysisKindRow& RowOf(const AnalyzeOptions& options) {
  return **FindAnalysisKind(options.kind);  // MakeRequest has looked
}

bool IsExperiment(const std::string& target) {
  return !absl::StartsWith(target, "runs/") && !ParseCellName(target);
}

// Returns the steps of --at, such as 0,100,-1; none if it is not given. INVALID_ARGUMENT names the
// first wrong one.
absl::StatusOr<std::vector<int32_t>> ReadSteps(const std::string& text) {
  std::vector<int32_t> steps;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int32_t step = 0;
    if (text.empty()) break;
    if (!absl::SimpleAtoi(part, &step) || step < kLastStep) {
      return absl::InvalidArgumentError(
          absl::StrCat("--at: ", reflect::Quoted(part),
                       " is not a step; expected a whole number from 0 on, or -1 for the last, or "
                       "several such as 0,100,-1"));
    }
    if (std::find(steps.begin(), steps.end(), step) != steps.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--at: ", step, " is given twice"));
    }
    steps.push_back(step);
  }
  return steps;
}

// Returns true if the command line may mean several analyses, even if it turns out to be one.
bool IsList(const AnalyzeOptions& options) {
  const Subjects subjects = RowOf(options).subjects;
  if (subjects != Subjects::kEach && subjects != Subjects::kSteps) return false;
  if (subjects == Subjects::kEach && absl::StrContains(options.at, ',')) return true;
  return options.targets.size() != 1 || IsExperiment(options.targets[0]);
}

// INVALID_ARGUMENT if these make no sense together, or not for this kind.
absl::Status CheckOptions(const AnalyzeOptions& options, const AnalysisKindRow& row) {
  if (row.subjects == Subjects::kNone && !options.targets.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("EXP: ", row.name, " reads no model; remove it"));
  }
  if (row.subjects == Subjects::kNone && (!options.at.empty() || !options.label.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--at, --label: ", row.name, " reads no model of an experiment; remove them"));
  }
  if (row.subjects != Subjects::kNone && options.targets.empty()) {
    return absl::InvalidArgumentError(
        "EXP is missing; expected an experiment, EXP/SETTING, EXP/CELL or runs/ID");
  }
  if (const auto steps = ReadSteps(options.at); !steps.ok()) return steps.status();
  if (options.tokens && !options.prompt.empty()) {
    return absl::InvalidArgumentError(
        "--tokens: can't be combined with --prompt; remove one of them");
  }
  if (options.documents && (options.tokens || !options.prompt.empty())) {
    return absl::InvalidArgumentError(
        "--documents: can't be combined with --tokens or --prompt; give one of them");
  }
  if (!options.dataset.empty() && !options.prompt.empty()) {
    return absl::InvalidArgumentError(
        "--dataset: can't be combined with --prompt; remove one of them");
  }
  if (options.output.given() && (options.dry_run || options.no_wait)) {
    return absl::InvalidArgumentError(
        "--output: can't be combined with --dry-run or --no-wait; remove one of them");
  }
  return absl::OkStatus();
}

// Returns the request without its subjects.
absl::StatusOr<v1::CreateAnalysisRequest> MakeRequest(const AnalyzeOptions& options) {
  const absl::StatusOr<const AnalysisKindRow*> row = FindAnalysisKind(options.kind);
  if (!row.ok()) return row.status();
  RETURN_IF_ERROR(CheckOptions(options, **row));
  ASSIGN_OR_RETURN(v1::AnalysisKind kind, MakeAnalysisKind(**row, options.set));
  v1::CreateAnalysisRequest request;
  *request.mutable_analysis() = std::move(kind);
  if (options.tokens) request.mutable_inputs()->set_tokens(*options.tokens);
  if (options.documents) request.mutable_inputs()->set_documents(*options.documents);
  if (!options.prompt.empty()) request.mutable_inputs()->set_prompt(options.prompt);
  if (!options.dataset.empty()) request.mutable_inputs()->set_dataset(options.dataset);
  if (options.seed) request.set_seed(*options.seed);
  request.set_label(options.label);
  request.set_validate_only(options.dry_run);
  return request;
}

// By its cell, so that the experiment has the numbers as metrics.
v1::AnalysisSubject SubjectOf(const std::string& experiment, const std::string& cell) {
  v1::AnalysisSubject subject;
  subject.set_experiment(experiment);
  subject.set_cell(cell);
  return subject;
}

// Appends the models that `text` means and that aren't in `known`: each once, also if an experiment
// and one of its cells are named.
absl::Status AddTargets(Connection* connection, const std::string& text,
                        std::set<std::string>* known, std::vector<AnalysisTarget>* targets) {
  const std::optional<CellName> part = ParseCellName(text);
  if (!part && !IsExperiment(text)) {
    if (!known->insert(text).second) return absl::OkStatus();
    targets->push_back({text, {}});
    targets->back().subject.set_run(text);
    return absl::OkStatus();
  }
  std::string name = part ? part->experiment : "";
  if (!part) {
    ASSIGN_OR_RETURN(const v1::Experiment experiment, FindExperiment(connection, text));
    name = experiment.name();
  }
  ASSIGN_OR_RETURN(const auto runs,
                   part ? ListPart(connection, *part) : ListAllRuns(connection, name));
  for (const v1::RunRow& row : runs.rows()) {
    if (!known->insert(absl::StrCat(row.experiment(), "/", row.cell())).second) continue;
    targets->push_back({absl::StrCat(Id(name), "/", row.cell()), SubjectOf(name, row.cell())});
  }
  return absl::OkStatus();
}

// Shortens the labels of several cells of one experiment to the part that differs.
void ShortenLabels(std::vector<AnalysisTarget>* targets) {
  const auto folder = [](const AnalysisTarget& target) {
    return target.label.substr(0, target.label.rfind('/') + 1);
  };
  const bool same = std::all_of(
      targets->begin(), targets->end(),
      [&](const AnalysisTarget& target) { return folder(target) == folder(targets->front()); });
  if (!same || targets->size() < 2) return;
  const size_t size = folder(targets->front()).size();
  for (AnalysisTarget& target : *targets) target.label.erase(0, size);
}

// Returns the target at each step, or without a step if none is given.
std::vector<AnalysisTarget> AtSteps(const AnalysisTarget& target,
                                    const std::vector<int32_t>& steps) {
  if (steps.empty()) return {target};
  std::vector<AnalysisTarget> models;
  for (const int32_t step : steps) {
    models.push_back(target);
    models.back().subject.set_step(step);
  }
  return models;
}

// Such as "pre-s1@1000"; of the only run "step 1000".
std::string LabelAtStep(const AnalysisTarget& model, bool several_runs) {
  const int32_t step = model.subject.step();
  const std::string at = step == kLastStep ? "last" : absl::StrCat(step);
  if (several_runs) return absl::StrCat(model.label, "@", at);
  return step == kLastStep ? "last step" : absl::StrCat("step ", at);
}

// One of all these models.
LabelledRequest RequestOf(const std::string& label, v1::CreateAnalysisRequest request,
                          const std::vector<AnalysisTarget>& models) {
  for (const AnalysisTarget& model : models) *request.add_subjects() = model.subject;
  return {label, std::move(request)};
}

std::vector<LabelledRequest> RequestsOf(Subjects subjects, const v1::CreateAnalysisRequest& request,
                                        const std::vector<AnalysisTarget>& runs,
                                        const std::vector<int32_t>& steps) {
  std::vector<LabelledRequest> requests;
  std::vector<AnalysisTarget> models;
  for (const AnalysisTarget& run : runs) {
    const std::vector<AnalysisTarget> own = AtSteps(run, steps);
    models.insert(models.end(), own.begin(), own.end());
    if (subjects == Subjects::kSteps) requests.push_back(RequestOf(run.label, request, own));
  }
  for (const AnalysisTarget& model : models) {
    if (subjects != Subjects::kEach) break;
    const std::string label = steps.size() > 1 ? LabelAtStep(model, runs.size() > 1) : model.label;
    requests.push_back(RequestOf(label, request, {model}));
  }
  if (subjects == Subjects::kEach || subjects == Subjects::kSteps) return requests;
  requests.push_back(RequestOf(models.size() == 1 ? models[0].label : "", request, models));
  for (const AnalysisTarget& model : models) {
    if (models.size() > 1) requests[0].models.push_back(model.label);
  }
  return requests;
}

absl::StatusOr<std::vector<LabelledRequest>> MakeRequests(
    Connection* connection, const AnalyzeOptions& options,
    const v1::CreateAnalysisRequest& request) {
  std::vector<AnalysisTarget> targets;
  std::set<std::string> known;
  for (const std::string& text : options.targets) {
    RETURN_IF_ERROR(AddTargets(connection, text, &known, &targets));
  }
  ShortenLabels(&targets);
  ASSIGN_OR_RETURN(const auto steps, ReadSteps(options.at));
  std::vector<LabelledRequest> requests =
      RequestsOf(RowOf(options).subjects, request, targets, steps);
  if (options.output.given() && requests.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output: ", requests.size(), " analyses are named; expected one. Name a single cell."));
  }
  return requests;
}

// Says each of the server's refusals, or problems, for all models that it is about.
void PrintErrors(const Context& context, const Remarks& remarks) {
  for (const std::string& line : remarks.Lines()) context.console.Error(line);
}

// A refusal that is about this model or these options, so that others may be asked for.
bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status);
}

// Returns the message about one run as a message about any: of many runs, "has no checkpoint of
// step 5" is printed once.
std::string OfAnyRun(absl::string_view message) {
  const size_t name_end = message.find(' ', 4);
  if (!absl::StartsWith(message, "run ") || name_end == absl::string_view::npos) {
    return std::string(message);
  }
  return absl::StrCat("it", message.substr(name_end));
}

// Returns the server's answers; `refusals` gets its refusals.
absl::StatusOr<std::vector<LabelledResponse>> Create(Connection* connection,
                                                     const std::vector<LabelledRequest>& requests,
                                                     Remarks* refusals) {
  std::vector<LabelledResponse> responses;
  for (const auto& [label, request, models] : requests) {
    absl::StatusOr<v1::CreateAnalysisResponse> response =
        connection->Call(kCreateAnalysis, request);
    if (response.ok()) {
      responses.push_back({label, *std::move(response), models});
    } else if (IsRefusal(response.status()) && requests.size() > 1) {
      refusals->Add(label, OfAnyRun(response.status().message()));
    } else if (IsRefusal(response.status())) {
      refusals->Add("", std::string(response.status().message()));
    } else {
      return response.status();
    }
  }
  return responses;
}

// One message, or an array of them if several could have come.
void PrintJsonOf(const Context& context, const AnalyzeOptions& options,
                 const std::vector<const google::protobuf::Message*>& messages) {
  if (IsList(options)) {
    context.console.data() << ToJsonArray(messages);
  } else if (!messages.empty()) {
    PrintJson(context, *messages[0]);
  }
}

int ShowDryRun(const Context& context, const AnalyzeOptions& options,
               const std::vector<LabelledResponse>& responses, Remarks refusals) {
  std::vector<LabelledResponse> possible;
  std::vector<const google::protobuf::Message*> messages;
  for (const LabelledResponse& one : responses) {
    messages.push_back(&one.response);
    for (const v1::Problem& problem : one.response.problems()) {
      refusals.Add(responses.size() > 1 ? one.label : "", problem.message());
    }
    if (one.response.problems().empty()) possible.push_back(one);
  }
  if (options.json) {
    PrintJsonOf(context, options, messages);
  } else if (!possible.empty()) {
    *context.console.out << CostText(possible, context.console.table_width());
  }
  PrintErrors(context, refusals);
  return refusals.empty() ? kSuccess : kFailure;
}

void PrintAnalysesJson(const Context& context, const AnalyzeOptions& options,
                       const std::vector<LabelledAnalysis>& analyses) {
  std::vector<const google::protobuf::Message*> messages;
  for (const LabelledAnalysis& one : analyses) messages.push_back(&one.analysis);
  PrintJsonOf(context, options, messages);
}

// Prints the queued analyses without waiting.
int ShowQueued(const Context& context, const AnalyzeOptions& options,
               const std::vector<LabelledAnalysis>& analyses) {
  if (options.json) {
    PrintAnalysesJson(context, options, analyses);
    return kSuccess;
  }
  Table table({{"analysis"}, {"model"}, {"state"}, {"progress", true}});
  for (const auto& [label, analysis, models] : analyses) {
    table.Add({Id(analysis.name()), label.empty() ? "—" : label,
               v1::AnalysisState::Value_Name(analysis.state()), ProgressText(analysis)});
  }
  return PrintTable(context, table);
}

// Before waiting: how to come back after Ctrl-C.
void AnnounceWait(const Context& context, const std::vector<LabelledAnalysis>& analyses) {
  const auto ended = static_cast<size_t>(
      std::count_if(analyses.begin(), analyses.end(),
                    [](const LabelledAnalysis& one) { return HasEnded(one.analysis); }));
  if (ended == analyses.size()) return;
  context.console.Info(absl::StrCat(
      ended > 0 ? absl::StrCat(ended, " stored already, ") : "", analyses.size() - ended,
      " to compute; Ctrl-C doesn't stop the server: `ablate analyses` lists them, and the same "
      "command shows them again"));
}

// A line about the one analysis that was asked for.
void PrintSummary(const Context& context, const AnalyzeOptions& options,
                  const v1::Analysis& analysis) {
  std::string line = absl::StrCat(analysis.name(), ": ", AnalysisKindName(analysis.analysis()));
  if (analysis.subjects_size() == 1) {
    absl::StrAppend(&line, " at step ", text::Grouped(analysis.subjects(0).step()));
  } else if (RowOf(options).subjects == Subjects::kSteps) {
    absl::StrAppend(&line, " of ", analysis.subjects_size(), " checkpoints up to step ",
                    text::Grouped(analysis.subjects(analysis.subjects_size() - 1).step()));
  }
  absl::StrAppend(&line, ", took ", TookText(ToDuration(analysis.device_time())));
  if (!options.output.given() && !analysis.artifact().empty()) {
    absl::StrAppend(&line, "; -o FILE writes ",
                    Count(static_cast<uint64_t>(analysis.arrays_size()), "array"), ", ",
                    Bytes(analysis.artifact_bytes()));
  }
  context.console.Info(line);
}

// Numbers and how each ended; the result is the exit code.
int Show(const Context& context, const AnalyzeOptions& options,
         const std::vector<LabelledAnalysis>& analyses) {
  std::vector<LabelledAnalysis> done;
  Remarks failures, notes;
  for (const LabelledAnalysis& one : analyses) {
    const v1::Analysis& analysis = one.analysis;
    const std::string label = analyses.size() > 1 ? one.label : "";
    if (analysis.state() == v1::AnalysisState::DONE) {
      done.push_back(one);
      for (const std::string& note : analysis.notes()) notes.Add(label, note);
    } else {
      failures.Add(label, analysis.state() == v1::AnalysisState::CANCELLED ? "it was cancelled"
                                                                           : analysis.failure());
    }
  }
  if (options.json) PrintAnalysesJson(context, options, analyses);
  const bool any_number = std::any_of(done.begin(), done.end(), [](const LabelledAnalysis& one) {
    return !one.analysis.numbers().empty();
  });
  if (!options.json && any_number) {
    *context.console.out << NumbersText(done, context.console.table_width());
    for (const LabelledAnalysis& one : done) {
      if (one.models.empty()) continue;
      *context.console.out << "\n" << ModelsText(one, context.console.table_width());
    }
    *context.console.out << std::flush;
  }
  for (const std::string& line : notes.Lines()) context.console.Note(line);
  PrintErrors(context, failures);
  return ExitCodeOf(analyses);
}

// Checks that the arrays can be written before anybody waits for them. Pipes are not tried: a
// reader would take the try for the end.
absl::Status TryOutput(const Output& output) {
  std::error_code error;
  const bool pipe = std::filesystem::is_other(output.path, error);
  if (!output.given() || pipe) return absl::OkStatus();
  PartFile probe(output);
  return probe.Open();
}

absl::Status WriteArrays(Connection* connection, const Context& context,
                         const AnalyzeOptions& options, const v1::Analysis& analysis) {
  if (analysis.artifact().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--output: ", analysis.name(), " has no arrays"));
  }
  const auto read = [&](uint64_t offset, const OnMessage<std::string>& on_data) {
    v1::ReadAnalysisArraysRequest request;
    request.set_name(analysis.name());
    request.set_offset(offset);
    return connection->Stream(
        kReadAnalysisArrays, request,
        [&](const v1::AnalysisArraysChunk& chunk) { return on_data(chunk.data()); });
  };
  RETURN_IF_ERROR(Download({analysis.name(), analysis.artifact_bytes(), analysis.artifact()},
                           options.output, read, context.sleep));
  context.console.Info(absl::StrCat(options.output.name(), ": ",
                                    Count(static_cast<uint64_t>(analysis.arrays_size()), "array"),
                                    ", ", Bytes(analysis.artifact_bytes())));
  return absl::OkStatus();
}

// Waits for the created analyses and prints them.
int WaitAndShow(Connection* connection, const Context& context, const AnalyzeOptions& options,
                std::vector<LabelledAnalysis> analyses) {
  AnnounceWait(context, analyses);
  const absl::Status followed = FollowAnalyses(connection, context, options.kind, &analyses);
  if (!followed.ok()) return FailToWait(context, followed);
  const int code = Show(context, options, analyses);
  if (code != kSuccess || analyses.size() != 1) return code;
  PrintSummary(context, options, analyses[0].analysis);
  if (!options.output.given()) return code;
  const absl::Status written = WriteArrays(connection, context, options, analyses[0].analysis);
  return written.ok() ? code : Fail(context, written);
}

absl::StatusOr<int> Analyze(const AnalyzeOptions& options, const v1::CreateAnalysisRequest& request,
                            const Context& context, Connection* connection) {
  RETURN_IF_ERROR(TryOutput(options.output));
  ASSIGN_OR_RETURN(const auto requests, MakeRequests(connection, options, request));
  Remarks refusals;
  absl::StatusOr<std::vector<LabelledResponse>> responses = Create(connection, requests, &refusals);
  if (!responses.ok()) {
    PrintErrors(context, refusals);
    return responses.status();
  }
  if (options.dry_run) return ShowDryRun(context, options, *responses, refusals);
  PrintErrors(context, refusals);
  NoteUnlabelled(context, *responses);
  NoteLabels(context, options, *responses);
  if (responses->empty()) return kFailure;
  std::vector<LabelledAnalysis> analyses;
  for (LabelledResponse& one : *responses) {
    analyses.push_back(
        {one.label, std::move(*one.response.mutable_analysis()), std::move(one.models)});
  }
  const int code = options.no_wait ? ShowQueued(context, options, analyses)
                                   : WaitAndShow(connection, context, options, std::move(analyses));
  return code == kSuccess && !refusals.empty() ? kFailure : code;
}

// Returns the last lines of the help: the kinds, or the options of the kind given with --help.
std::string Footer(const AnalyzeOptions& options) {
  const absl::StatusOr<const AnalysisKindRow*> row = FindAnalysisKind(options.kind);
  const std::string kinds =
      row.ok() ? AnalysisOptionsText(**row)
               : absl::StrCat(AnalysisKindsText(),
                              "\n`ablate help analyze KIND` prints the options of a kind. "
                              "docs/reference/analyses.md has the formulas.\n");
  return absl::StrCat(
      kinds,
      "\nEXP stands for all its cells. Each model gets an analysis of its own, except: cka "
      "compares all models, trajectory reads several checkpoints of a run, and norm_response reads "
      "no model. Equal analyses are computed once. Computing continues while runs train, and after "
      "Ctrl-C.\n"
      "\nExit codes:\n"
      "  0   all are DONE\n"
      "  1   at least one FAILED or was refused\n"
      "  2   at least one was cancelled\n"
      "  69  no server answers\n"
      "  70  waiting failed otherwise\n\n"
      "Examples:\n  ablate analyze spectrum names-norm/pre-lr0.01-s42 --at 1000\n"
      "  ablate analyze cka names-norm/pre-lr0.01-s42 names-norm/post-lr0.01-s42\n"
      "  ablate analyze gradient_flow names-norm --set signal=rule");
}

}  // namespace

Action DefineAnalyze(Command* command) {
  auto options = std::make_shared<AnalyzeOptions>();
  command->Argument(&options->kind, "KIND", "Kind of analysis, see below");
  command->OptionalArguments(&options->targets, "EXP",
                             "Models: experiments, EXP/SETTING, EXP/CELL or runs/ID");
  command->Options(&options->set, "--set", "NAME=VALUE",
                   "Set an option of the kind, such as signal=rule or sites=[embedding]");
  command->Option(&options->at, "--at,--step", "STEP",
                  "Use the checkpoint of this step, or of several, such as 0,100,-1; -1 is the "
                  "last [-1; trajectory: all]");
  command->Option(&options->tokens, "--tokens", "N",
                  "Read about N tokens of held-out data, 1–1,000,000 [by kind]");
  command->Option(&options->documents, "--documents", "N",
                  "Read the first N held-out documents, windows or sequences, 1–1,000,000");
  command->Option(&options->prompt, "--prompt", "TEXT",
                  "Read TEXT instead of held-out data, at most 512 characters");
  command->Option(&options->dataset, "--dataset", "DATASET",
                  "Read this stored data set from its beginning instead of held-out data");
  command->Option(&options->seed, "--seed", "N", "Seed of all random draws, 0–4294967295 [0]");
  command->Option(&options->label, "--label", "LABEL",
                  "Name the numbers LABEL/NUMBER among the experiment's metrics [the kind]");
  command->Output(&options->output, OutputKind::kFile, "FILE",
                  "Write the arrays of a single analysis to FILE as safetensors");
  command->Flag(&options->dry_run, "--dry-run",
                "Compute nothing; print the cost of each and of all, what is stored, and all "
                "problems");
  command->Flag(&options->no_wait, "--no-wait", "Queue the analyses and print their names");
  command->Flag(&options->json, "--json",
                "Print the server's message as JSON; an array if several analyses may result");
  command->Footer([options] { return Footer(*options); });
  return WithServer(*command, options, MakeRequest, Analyze);
}

}  // namespace ablate::client
