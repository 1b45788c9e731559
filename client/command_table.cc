#include "client/command_table.h"

#include <map>
#include <optional>
#include <string>

#include "client/completion/complete.h"
#include "client/output/terminal_stream.h"

namespace ablate::client {
namespace {

constexpr CommandGroup kData = {"data", "List, add, get and remove data sets; encode text",
                                "Example:\n  ablate data add examples/data/names.txt"};
constexpr CommandGroup kArtifact = {
    "artifact", "List and fetch checkpoints",
    "Example:\n  ablate artifact get names-norm/pre-lr0.01-s42 checkpoint -o pre.safetensors"};
constexpr CommandGroup kModel = {"model", "List, import, show, remove and export models",
                                 "Example:\n  ablate model add ./gpt2 --name gpt2"};

constexpr CommandGroup kQueue = {
    "queue", "Show whose runs wait, why and how long; pause, resume and move experiments",
    "Example:\n  ablate queue\n  ablate queue pause names-norm", nullptr, DefineQueue};
constexpr CommandGroup kCluster = {
    "cluster", "Let another scheduler's machines train: Slurm, Kubernetes",
    "Example:\n  ablate cluster slurm --join ci.join --max 8 -- --gres=gpu:1"};

constexpr CommandGroup kAdmin = {
    "admin", "Share a server: certificates, users, tokens, quotas, audit",
    "Example:\n  ablate admin init lab.example.org:7443\n  ablate up --listen 0.0.0.0:7443\n"
    "  ablate admin user add ada -o ada.join"};
constexpr CommandGroup kAdminUser = {"user", "Add, list, change and remove users",
                                     "Example:\n  ablate admin user add ada -o ada.join", &kAdmin};
constexpr CommandGroup kAdminToken = {
    "token", "Make, list and revoke tokens",
    "Example:\n  ablate admin token add ada --note laptop -o ada-laptop.join", &kAdmin};

constexpr CommandGroup kAdminQuota = {
    "quota", "Limit and list the resources of users",
    "Example:\n  ablate admin quota set ada --lanes 4 --stored 20GB", &kAdmin};

constexpr const char* kServer = "Server";
constexpr const char* kExperiments = "Experiments";
constexpr const char* kResults = "Results";
constexpr const char* kModels = "Trained models";
constexpr const char* kDataSets = "Data";
constexpr const char* kAccess = "Access";
constexpr const char* kMore = "More";

constexpr CommandRow kCommands[] = {
    {kServer, nullptr, "up", "Start a personal server in the background, if none runs", DefineUp},
    {kServer, nullptr, "down", "Stop the personal server; the next up continues its runs",
     DefineDown},
    {kServer, nullptr, "workers", "List workers: device, role, state, runs", DefineWorkers},
    {kServer, nullptr, "top", "Show workers, lanes and the queue, live", DefineTop},
    {kServer, nullptr, "web", "Serve a live page of experiments to this machine's browsers",
     DefineWeb},
    {kServer, &kQueue, "pause", "Begin no more runs of experiments", DefineQueuePause},
    {kServer, &kQueue, "resume", "Let paused experiments proceed", DefineQueueResume},
    {kServer, &kQueue, "move", "Put an experiment's runs before or after its owner's others",
     DefineQueueMove},
    {kServer, &kCluster, "slurm", "Keep as many workers in Slurm as the queue wants",
     DefineClusterSlurm},
    {kServer, &kCluster, "kubernetes", "Print manifests of a server and workers for Kubernetes",
     DefineClusterKubernetes},
    {kExperiments, nullptr, "submit", "Create an experiment from a file and queue its runs",
     DefineSubmit},
    {kExperiments, nullptr, "check-resume",
     "Check that a program continues exactly from its checkpoints", DefineCheckResume},
    {kExperiments, nullptr, "ls", "List experiments, newest first", DefineLs},
    {kExperiments, nullptr, "show", "Show an experiment: question, state, result per setting",
     DefineShow},
    {kExperiments, nullptr, "runs",
     "List cells and their runs, of one experiment or by a condition", DefineRuns},
    {kExperiments, nullptr, "spec", "Print the file of an experiment, or of one run", DefineSpec},
    {kExperiments, nullptr, "watch", "Show an experiment live until it ends, then the verdict",
     DefineWatch},
    {kExperiments, nullptr, "wait", "Wait until an experiment ends; return how it ended",
     DefineWait},
    {kExperiments, nullptr, "logs", "Show the history of a run: queued, started, lost, failed",
     DefineLogs},
    {kExperiments, nullptr, "edit", "Rename, tag, annotate or archive experiments", DefineEdit},
    {kExperiments, nullptr, "cancel", "Cancel experiments or analyses", DefineCancel},
    {kExperiments, nullptr, "rm", "Remove ended experiments with their runs, or analyses",
     DefineRm},
    {kExperiments, nullptr, "import", "Keep results of other tools as an experiment", DefineImport},
    {kResults, nullptr, "compare", "Compare settings with their baseline", DefineCompare},
    {kResults, nullptr, "judge", "Judge results of any tool, or an experiment, by exit code",
     DefineJudge},
    {kResults, nullptr, "best", "List the cells with the best values of a metric", DefineBest},
    {kResults, nullptr, "report", "Write a report of experiments as one HTML page", DefineReport},
    {kResults, nullptr, "figure", "Draw a figure as SVG, PDF or PNG", DefineFigure},
    {kResults, nullptr, "table", "Print the table of a comparison: text, CSV or LaTeX",
     DefineTable},
    {kResults, nullptr, "metrics", "Print metrics: summaries, or every point", DefineMetrics},
    {kResults, nullptr, "export", "Write every point to a file for other programs", DefineExport},
    {kResults, nullptr, "diff", "Show the fields in which two experiments or runs differ",
     DefineDiff},
    {kResults, nullptr, "sql",
     "Run an SQL SELECT over the experiments, runs and metrics that you may see", DefineSql},
    {kModels, nullptr, "generate", "Generate text with a trained model", DefineGenerate},
    {kModels, nullptr, "analyze", "Compute numbers and arrays of trained models", DefineAnalyze},
    {kModels, nullptr, "analyses", "List analyses and their progress", DefineAnalyses},
    {kModels, &kArtifact, "ls", "List the checkpoints of a run", DefineArtifactLs},
    {kModels, &kArtifact, "get", "Write a checkpoint to a file", DefineArtifactGet},
    {kModels, &kModel, "ls", "List imported models", DefineModelLs},
    {kModels, &kModel, "add", "Import a model of transformers from a folder", DefineModelAdd},
    {kModels, &kModel, "show", "Show an imported model: sizes, norms, notes", DefineModelShow},
    {kModels, &kModel, "rm", "Remove an imported model", DefineModelRm},
    {kModels, &kModel, "export", "Write a model to a folder for transformers", DefineModelExport},
    {kDataSets, &kData, "ls", "List data sets", DefineDataLs},
    {kDataSets, &kData, "add", "Upload a text file as a data set", DefineDataAdd},
    {kDataSets, &kData, "get", "Download a data set to a file or folder", DefineDataGet},
    {kDataSets, &kData, "encode", "Encode a text file as token ids", DefineDataEncode},
    {kDataSets, &kData, "rm", "Remove a data set that no run needs", DefineDataRm},
    {kAccess, nullptr, "login", "Log in to a shared server", DefineLogin},
    {kAccess, nullptr, "logout", "Forget a shared server and its token", DefineLogout},
    {kAccess, nullptr, "whoami", "Show the server and the user that commands use", DefineWhoami},
    {kAccess, &kAdmin, "init", "Prepare a server for sharing: certificates, first admin",
     DefineAdminInit},
    {kAccess, &kAdmin, "renew", "Renew the server's certificate", DefineAdminRenew},
    {kAccess, &kAdmin, "check", "Check that everything stored is still there and whole",
     DefineAdminCheck},
    {kAccess, &kAdmin, "audit", "List changes and refused calls, newest first", DefineAdminAudit},
    {kAccess, &kAdminUser, "add", "Add a user and write a token to a join file",
     DefineAdminUserAdd},
    {kAccess, &kAdminUser, "ls", "List users", DefineAdminUserLs},
    {kAccess, &kAdminUser, "role", "Change the role of a user", DefineAdminUserRole},
    {kAccess, &kAdminUser, "programs", "Let a user submit own programs, or not",
     DefineAdminUserPrograms},
    {kAccess, &kAdminUser, "rm", "Remove a user and revoke its tokens", DefineAdminUserRm},
    {kAccess, &kAdminQuota, "set", "Change the quota of a user", DefineAdminQuotaSet},
    {kAccess, &kAdminQuota, "ls", "List users with their usage and quota", DefineAdminQuotaLs},
    {kAccess, &kAdminToken, "add", "Make another token for a user", DefineAdminTokenAdd},
    {kAccess, &kAdminToken, "ls", "List tokens, newest first", DefineAdminTokenLs},
    {kAccess, &kAdminToken, "revoke", "Revoke a token at once", DefineAdminTokenRevoke},
    {kMore, nullptr, "completion", "Print a script that completes commands in a shell",
     DefineCompletion},
    {kMore, nullptr, "help", "Print the help of a command", DefineHelp}};

constexpr const char* kFooter = R"(Example:
  ablate up
  ablate submit examples/names-norm.yaml --wait
  ablate compare names-norm

Names:
  EXP       an experiment: experiments/ID, an ID, a unique prefix of an ID, or a name (the newest experiment of that name)
  EXP/CELL  one cell of it, such as names-norm/pre-lr0.01-s42; a setting that has one cell; or EXP/@best, the run that is DONE and has the best report.primary

Control characters and direction marks in texts are shown as escapes such as \x1b, also in a pipe or file. JSON, CSV, LaTeX, YAML and written files have them unchanged.

Exit codes:
  0   success; wait, watch: every run is DONE or DIVERGED; analyze: all are DONE
  1   failure, or problems were found; wait, watch, analyze: at least one FAILED
  2   cancelled: the experiment, a run or an analysis that was waited for
  3   judge, compare --gate: more pairs are needed; of these, 0 is better, 1 not shown, 2 worse
  64  invalid command line or setting, such as ABLATE_SERVER
  65  judge, compare --gate: the results can't be judged
  69  no server answers, or it is busy: try again later
  70  wait, watch, analyze: waiting failed; the outcome is unknown

Environment:
  ABLATE_SERVER  server to use: the name of a login, personal, unix:PATH or localhost:PORT
  ABLATE_HOME    folder of the personal server [$XDG_DATA_HOME/ablate or ~/.local/share/ablate]
  NO_COLOR       print without colours)";

using Groups = std::map<const CommandGroup*, Command>;

// Returns the command of a group, made at its first use.
Command CommandOf(const CommandGroup* group, const char* section, Command root, Groups* groups) {
  if (group == nullptr) return root;
  const auto found = groups->find(group);
  if (found != groups->end()) return found->second;
  Command added = CommandOf(group->parent, section, root, groups)
                      .Add(group->name, group->help, group->parent == nullptr ? section : "");
  if (group->define != nullptr) added.Do(group->define(&added));
  added.Footer(group->footer);
  groups->emplace(group, added);
  return added;
}

}  // namespace

absl::Span<const CommandRow> CommandTable() { return kCommands; }

int CallServer(const Context& context,
               absl::FunctionRef<absl::StatusOr<int>(Connection* connection)> run) {
  const auto connection = Connect(context);
  if (!connection.ok()) return FailSettings(context, connection.status());
  const absl::StatusOr<int> code = run(connection->get());
  return code.ok() ? *code : Fail(context, code.status());
}

int RunProgram(const std::vector<std::string>& arguments, const Context& context) {
  CommandLine line("ablate", ABLATE_VERSION,
                   "Train grids of small transformers and compare their variants.");
  Groups groups;
  for (const CommandRow& row : CommandTable()) {
    Command command = CommandOf(row.group, row.section, line.root(), &groups)
                          .Add(row.name, row.help, row.group == nullptr ? row.section : "");
    command.Do(row.define(&command));
  }
  std::string server;
  line.root().OptionEverywhere(&server, "--server", "NAME",
                               "Server to use, as in ABLATE_SERVER; accepted by every command");
  line.root().Footer(kFooter);
  Context chosen = context;
  // Texts of servers and files must not control a terminal, also if it shows them later.
  TerminalStream out(context.console.out), err(context.console.err);
  chosen.console.out = &out;
  chosen.console.err = &err;
  chosen.environment = [&](const char* name) -> std::optional<std::string> {
    if (!server.empty() && std::string(name) == "ABLATE_SERVER") return server;
    return context.environment(name);
  };
  int code = kSuccess;
  if (!arguments.empty() && arguments.front() == kCompleteCommand) {
    line.Complete({arguments.begin() + 1, arguments.end()}, chosen);
  } else {
    code = line.Run(arguments, chosen);
  }
  chosen.console.out->flush();
  if (*chosen.console.out) return code;
  chosen.console.Error("writing the output failed");
  return code == kSuccess ? kFailure : code;
}

}  // namespace ablate::client
