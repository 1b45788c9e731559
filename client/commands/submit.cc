// `ablate submit FILE`: creates an experiment, or prints its plan.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/show_experiment.h"
#include "client/submit/prepare.h"
#include "client/submit/submission.h"

namespace ablate::client {
namespace {

int ShowDryRun(const Context& context, const SubmitOptions& options, const Submission& submission,
               const v1::CreateExperimentResponse& response) {
  if (options.json) PrintJson(context, response);
  if (!response.problems().empty()) {
    return ReportAll(context, submission, response);
  }
  if (options.json) return kSuccess;
  *context.console.out << Headline(response) << "\n"
                       << TrainersText(response) << "\n"
                       << GridTable(response, context.console.table_width());
  return kSuccess;
}

// Returns a text about tags and a note of the command line that the identical experiment doesn't
// have, and how to apply them; empty if it has them.
std::string IgnoredText(const SubmitOptions& options,
                        const v1::CreateExperimentResponse& response) {
  const v1::Experiment& found = response.experiment();
  std::string edits;
  for (const std::string& tag : options.tags) {
    const bool has = std::count(found.tags().begin(), found.tags().end(), tag) > 0;
    if (!has) absl::StrAppend(&edits, " --tag ", tag);
  }
  if (!options.note.empty() && options.note != found.note()) edits += " --note TEXT";
  if (edits.empty()) return "";
  return absl::StrCat("--tag and --note don't change an experiment that exists; to apply them: ",
                      "`ablate edit ", Id(response.identical_to()), edits, "`");
}

// Prints the server's answer; returns the exit code unless the command waits.
int Show(const Context& context, const SubmitOptions& options, const Submission& submission,
         const v1::CreateExperimentResponse& response) {
  int code = kSuccess;
  if (options.dry_run) {
    code = ShowDryRun(context, options, submission, response);
  } else if (options.json) {
    context.console.data() << ToJson(response) << std::flush;
  } else {
    *context.console.out << Headline(response) << std::endl;
  }
  if (code != kSuccess) return code;  // notes about a plan with problems may change
  if (!submission.extends.empty()) {
    context.console.Note(absl::StrCat("it ", options.dry_run ? "would extend " : "extends ",
                                      Id(submission.extends), ", which ",
                                      options.dry_run ? "would be archived" : "is archived"));
  }
  for (const std::string& note : response.notes()) context.console.Note(note);
  if (!response.identical_to().empty()) {
    context.console.Note(absl::StrCat("identical to ", Id(response.identical_to()),
                                      ": submit would create nothing"));
    const std::string ignored = IgnoredText(options, response);
    if (!ignored.empty()) context.console.Note(ignored);
  }
  const std::string evaluation = EvaluationText(response);
  if (!evaluation.empty()) context.console.Note(evaluation);
  return code;
}

int Wait(Connection* connection, const Context& context, const v1::Experiment& experiment) {
  return FinishWait(context, connection,
                    FollowWithProgress(connection, context, experiment, context.console.err,
                                       context.console.err_is_live()));
}

// Tells about the experiment that the submission would only repeat, and shows it.
int ShowIdentical(Connection* connection, const Context& context, const SubmitOptions& options,
                  const v1::CreateExperimentResponse& response) {
  const std::string name = absl::StrCat(Id(response.identical_to()),
                                        response.experiment().archived() ? " (archived)" : "");
  context.console.Info(
      options.extend.empty()
          ? absl::StrCat("identical to ", name, ": nothing was created; --fresh trains its cells ",
                         "again")
          : absl::StrCat("nothing to add to ", name, ": give --seeds, --axis, --set or FILE"));
  const std::string ignored = IgnoredText(options, response);
  if (!ignored.empty()) context.console.Note(ignored);
  if (options.json) {
    context.console.data() << ToJson(response) << std::flush;
    return kSuccess;
  }
  *context.console.out << Headline(response) << std::endl;
  if (options.wait) return kSuccess;
  // Standard output is the same line as of a new experiment.
  Context beside = context;
  beside.console.out = context.console.err;
  const absl::Status shown = ShowExperiment(beside, connection, response.experiment());
  return shown.ok() ? kSuccess : Fail(context, shown);
}

// Returns what is wrong with the options whatever the file says, or an empty text.
std::string Misuse(const SubmitOptions& options) {
  if (!options.again.empty() && !options.extend.empty()) {
    return "--again and --extend exclude each other; give one of them";
  }
  if (!options.again.empty() && !options.file.empty()) {
    return "--again takes the stored experiment; remove FILE";
  }
  if (!options.extend.empty() && options.steps) {
    return "--extend keeps the trained cells; remove --steps";
  }
  if (!options.extend.empty() && options.fresh) {
    return "--extend keeps the trained cells; remove --fresh";
  }
  if (options.file.empty() && options.again.empty() && options.extend.empty()) {
    return "FILE is missing; give a file, --again EXP or --extend EXP";
  }
  return std::string(CheckNewTags(options.tags).message());
}

// Finds the experiment of --again or --extend; nothing if neither is given.
absl::StatusOr<std::optional<v1::Experiment>> FindStored(const SubmitOptions& options,
                                                         const Context& context) {
  const std::string& name = options.extend.empty() ? options.again : options.extend;
  if (name.empty()) return std::optional<v1::Experiment>();
  ASSIGN_OR_RETURN(const auto connection, Connect(context));
  return FindExperiment(connection.get(), name);
}

int Submit(SubmitOptions options, const Context& context) {
  if (const std::string misuse = Misuse(options); !misuse.empty()) {
    context.console.Error(absl::StrCat("ablate submit: ", misuse));
    return kUsage;
  }
  const absl::StatusOr<std::optional<v1::Experiment>> stored = FindStored(options, context);
  if (!stored.ok()) return Fail(context, stored.status());
  const v1::Experiment* const earlier = stored->has_value() ? &**stored : nullptr;
  if (earlier != nullptr && earlier->private_()) options.is_private = true;
  ReadySubmission ready;
  if (const int code = Prepare(options, earlier, context, &ready); code != kSuccess) return code;
  const auto& [submission, connection] = ready;
  const v1::CreateExperimentRequest request = MakeRequest(submission, options);
  const auto response = connection->Call(kCreateExperiment, request);
  if (!response.ok()) {
    return Explain(connection.get(), context, submission, request, response.status());
  }
  if (!options.dry_run && !response->identical_to().empty()) {
    const int code = ShowIdentical(connection.get(), context, options, *response);
    return options.wait ? Wait(connection.get(), context, response->experiment()) : code;
  }
  const int code = Show(context, options, submission, *response);
  if (options.dry_run || !options.wait) return code;
  return Wait(connection.get(), context, response->experiment());
}

}  // namespace

Action DefineSubmit(Command* command) {
  auto options = std::make_shared<SubmitOptions>();
  command->OptionalArgument(&options->file, "FILE",
                            "Experiment file (.yaml, .yml or .json), or - for standard input");
  command->Option(&options->again, "--again", "EXP",
                  "Submit a stored experiment again, in place of FILE; with other options, a "
                  "changed one");
  command->Option(&options->extend, "--extend", "EXP",
                  "Extend an experiment by seeds, settings, steps or analyses of FILE: the new one "
                  "has its name, keeps all of its cells and their runs, and EXP is archived. "
                  "Without FILE, its stored spec is extended");
  command->Options(&options->set, "--set", "PATH=VALUE",
                   "Set a field of base, such as training.steps=100; null clears it");
  command->Options(&options->axes, "--axis", "NAME=VALUES",
                   "Give an axis its values, such as lr=1e-3,3e-3 or 'lr={log: [1e-4, 1e-2], "
                   "count: 5}'. NAME is one of the file's axes, or a field for a new axis: its "
                   "path below base, or an end of it that only one field has");
  command->Options(&options->data, "--data", "PATH",
                   "Allow the file to name data sets at PATH, a file or folder outside its own "
                   "folder");
  command->Option(&options->seeds, "--seeds", "SEEDS",
                  "Use these seeds: 8 for 0 to 7, 0..9 or 1,2,5 [the file's]");
  command->Option(&options->steps, "--steps", "N",
                  "Train N steps, for a short trial: leaves out checkpoints, analyses and their "
                  "steps beyond N, and notes them [the file's]");
  command->Option(&options->name, "--name", "NAME", "Name the experiment [the file's name]");
  command->Options(&options->tags, "--tag", "TAG", "Add a tag, by which `ablate ls` finds it");
  command->Option(&options->note, "--note", "TEXT", "Add a note, which `ablate show` prints");
  command->Flag(&options->fresh, "--fresh", "Train every cell again; reuse no stored run");
  command->Flag(&options->is_private, "--private",
                "Show the experiment, and the data sets that it uploads, only to you and admins; "
                "share its runs with nobody");
  command->Flag(
      &options->dry_run, "--dry-run",
      "Create nothing; print the grid, the trainer, reused runs, an estimate and all problems. "
      "Data sets that the server lacks are uploaded for this. Only you see them, and they are "
      "deleted after an hour unless an experiment uses them");
  command->Flag(&options->wait, "--wait",
                "Wait until every run and analysis has ended; exit as `ablate wait` does");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Paths of data sets are relative to the file, also in --set. Files that the server lacks are "
      "uploaded; a note with name and size is printed before each. Only you see them until the "
      "experiment exists. A path in the file that leads out of its folder, or to a hidden file, is "
      "refused unless --data or --set names it.\n\n"
      "A submission that would only repeat an experiment of yours creates nothing: same spec, same "
      "runs. Then that experiment is named and shown.\n\n"
      "Examples:\n  ablate submit examples/names-norm.yaml --seeds 42..44 --set "
      "training.steps=500\n"
      "  ablate submit examples/names-norm.yaml --axis lr=1e-3,3e-3,1e-2 --seeds 42..49\n"
      "  ablate submit examples/residual-depth.yaml --steps 3 --seeds 1 --name trial\n"
      "  ablate submit --extend names-norm --seeds 42..61\n"
      "  ablate submit --again names-norm --set training.optimizer=sgd --name names-sgd");
  return [options](const Context& context) { return Submit(*options, context); };
}

}  // namespace ablate::client
