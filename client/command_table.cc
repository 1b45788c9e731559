#include "client/command_table.h"

#include <map>
#include <optional>
#include <string>

#include "client/output/terminal_stream.h"

namespace ablate::client {
namespace {

constexpr CommandGroup kData = {"data", "List, add and remove data sets",
                                "Example:\n  ablate data add examples/data/names.txt"};
constexpr CommandGroup kArtifact = {
    "artifact", "List and fetch what runs leave: checkpoints",
    "Example:\n  ablate artifact get names-norm/pre-lr0.01-s42 checkpoint -o pre.safetensors"};

constexpr CommandGroup kAdmin = {
    "admin", "Share a server: users, tokens, quotas, and who changed what",
    "Example:\n  ablate admin init box.example.org:7443\n  ablate up --listen 0.0.0.0:7443\n"
    "  ablate admin user add ada -o ada.join"};
constexpr CommandGroup kAdminUser = {"user", "Add, list, change and remove users",
                                     "Example:\n  ablate admin user add ada -o ada.join", &kAdmin};
constexpr CommandGroup kAdminToken = {
    "token", "Make, list and revoke tokens",
    "Example:\n  ablate admin token add ada --note laptop -o ada-laptop.join", &kAdmin};

constexpr CommandGroup kAdminQuota = {
    "quota", "Bound what users have at one time, and list what they have",
    "Example:\n  ablate admin quota set ada --lanes 4 --stored 20GB", &kAdmin};

constexpr CommandRow kCommands[] = {
    {nullptr, "up", "Start a personal server in the background, if none runs", DefineUp},
    {nullptr, "down", "Stop the personal server; its runs go on after the next up", DefineDown},
    {nullptr, "submit", "Create an experiment from a file and queue its runs", DefineSubmit},
    {nullptr, "ls", "List experiments, newest first", DefineLs},
    {nullptr, "show", "Show an experiment: question, state, results per setting", DefineShow},
    {nullptr, "runs", "List an experiment's cells and their runs", DefineRuns},
    {nullptr, "watch", "Follow an experiment until it has ended", DefineWatch},
    {nullptr, "wait", "Wait until an experiment has ended", DefineWait},
    {nullptr, "cancel", "Cancel experiments (runs that others share go on) or analyses",
     DefineCancel},
    {nullptr, "rm", "Remove ended or cancelled experiments and their runs, or analyses", DefineRm},
    {nullptr, "logs", "Show a run's history: queued, granted, lost, failed and why", DefineLogs},
    {nullptr, "metrics", "Print an experiment's metrics: summaries, or all points", DefineMetrics},
    {nullptr, "compare", "Compare settings, also of several experiments, with their baseline",
     DefineCompare},
    {nullptr, "diff", "Show what two experiments, parts of them or runs differ in", DefineDiff},
    {nullptr, "table", "Print a comparison's main table as text, CSV or LaTeX", DefineTable},
    {nullptr, "figure", "Draw an experiment: curves, differences, sensitivity", DefineFigure},
    {nullptr, "report", "Write what experiments came to as one HTML page", DefineReport},
    {nullptr, "export", "Write every point into a file for other programs", DefineExport},
    {nullptr, "generate", "Let a trained model write: one sample a line", DefineGenerate},
    {nullptr, "analyze", "Compute numbers and arrays of trained models", DefineAnalyze},
    {nullptr, "analyses", "List analyses: what of, and how far they are", DefineAnalyses},
    {&kData, "ls", "List data sets", DefineDataLs},
    {&kData, "add", "Upload a text with one document a line", DefineDataAdd},
    {&kData, "rm", "Remove a data set that no run needs", DefineDataRm},
    {&kArtifact, "ls", "List a run's artifacts", DefineArtifactLs},
    {&kArtifact, "get", "Fetch an artifact into a file", DefineArtifactGet},
    {nullptr, "workers", "List the workers: what they are for, and what they do", DefineWorkers},
    {nullptr, "login", "Talk to a server elsewhere from now on", DefineLogin},
    {nullptr, "logout", "Forget a server elsewhere and its token", DefineLogout},
    {nullptr, "whoami", "Say which server commands talk to, and as whom", DefineWhoami},
    {&kAdmin, "init", "Make what sharing takes: certificates, the first admin", DefineAdminInit},
    {&kAdmin, "renew", "Give the server a new certificate", DefineAdminRenew},
    {&kAdmin, "audit", "List who changed what and who was refused, newest first", DefineAdminAudit},
    {&kAdminUser, "add", "Add a user, with a token in a join file", DefineAdminUserAdd},
    {&kAdminUser, "ls", "List users", DefineAdminUserLs},
    {&kAdminUser, "role", "Change what a user may do", DefineAdminUserRole},
    {&kAdminUser, "rm", "Remove a user and revoke its tokens", DefineAdminUserRm},
    {&kAdminQuota, "set", "Change a user's quota", DefineAdminQuotaSet},
    {&kAdminQuota, "ls", "List users with what they have and may have", DefineAdminQuotaLs},
    {&kAdminToken, "add", "Make another token of a user", DefineAdminTokenAdd},
    {&kAdminToken, "ls", "List tokens, newest first", DefineAdminTokenLs},
    {&kAdminToken, "revoke", "Revoke a token at once", DefineAdminTokenRevoke}};

constexpr const char* kFooter = R"(Example:
  ablate up
  ablate submit examples/names-norm.yaml --wait
  ablate show names-norm

EXP is experiments/ID, an ID, the name of an experiment (the newest one of that name), or
the beginning of an ID that only one experiment has; EXP/CELL is one of its cells.
--json prints the server's message.

On a terminal control characters and marks of direction in texts are shown, such as \x1b;
a pipe or file gets what --json, --csv, compare, table and generate print as it is.

Exit codes:
  0   done; for wait: every run is DONE or DIVERGED; for analyze: all are DONE
  1   it failed, or a problem was found; for wait and analyze: one FAILED
  2   what was waited for was cancelled
  64  the command line or a setting, such as ABLATE_SERVER, makes no sense
  69  no server answers, or a part of it is away or busy: try again
  70  for wait and analyze: waiting itself failed, whatever it was for came to

Environment:
  ABLATE_SERVER    where the server is: the name of a login, personal, unix:PATH or localhost:PORT
  ABLATE_HOME      the personal server's folder (else $XDG_DATA_HOME/ablate, ~/.local/share/ablate)
  NO_COLOR         no colours)";

using Groups = std::map<const CommandGroup*, Command>;

// The command that a group's commands stand behind: made where it is not there yet.
Command CommandOf(const CommandGroup* group, Command root, Groups* groups) {
  if (group == nullptr) return root;
  const auto found = groups->find(group);
  if (found != groups->end()) return found->second;
  Command added = CommandOf(group->parent, root, groups).Add(group->name, group->help);
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
                   "An ablation lab: experiment files in, trained grids and their numbers out.");
  Groups groups;
  for (const CommandRow& row : CommandTable()) {
    Command command = CommandOf(row.group, line.root(), &groups).Add(row.name, row.help);
    command.Do(row.define(&command));
  }
  std::string server;
  line.root().OptionEverywhere(&server, "--server", "NAME",
                               "the server that is meant, as ABLATE_SERVER has it");
  line.root().Footer(kFooter);
  Context chosen = context;
  // Whatever a server or a file says, a terminal must not obey it.
  TerminalStream out(context.console.out), err(context.console.err);
  if (context.console.out_is_terminal) chosen.console.out = &out;
  if (context.console.err_is_terminal) chosen.console.err = &err;
  chosen.environment = [&](const char* name) -> std::optional<std::string> {
    if (!server.empty() && std::string(name) == "ABLATE_SERVER") return server;
    return context.environment(name);
  };
  const int code = line.Run(arguments, chosen);
  chosen.console.out->flush();
  if (*chosen.console.out) return code;
  chosen.console.Error("writing the output failed");
  return code == kSuccess ? kFailure : code;
}

}  // namespace ablate::client
