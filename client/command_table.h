// The table of commands, each in a file of commands/, and the program that they make. A new command
// has a function here, a row in the table, and its file.
#ifndef ABLATE_CLIENT_COMMAND_TABLE_H_
#define ABLATE_CLIENT_COMMAND_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// A word that several commands have in front of their names, such as data of `ablate data ls`.
struct CommandGroup {
  const char* name;
  const char* help;
  const char* footer;
  const CommandGroup* parent = nullptr;          // such as admin of `admin user add`
  Action (*define)(Command* command) = nullptr;  // what the word alone does, as in CommandRow
};

struct CommandRow {
  const char* section;        // heading in the help
  const CommandGroup* group;  // null if it has none
  const char* name;
  const char* help;
  // Adds the command's arguments, options and footer; the result is what it does with them.
  Action (*define)(Command* command);
};

// In the order of the help. The commands of a section, and of a group, follow each other.
absl::Span<const CommandRow> CommandTable();

// Runs the whole program without main, so that tests can run it as a shell would. `arguments` lack
// the program's name; returns the exit code (context.h).
int RunProgram(const std::vector<std::string>& arguments, const Context& context);

Action DefineUp(Command* command);
Action DefineDown(Command* command);
Action DefineSubmit(Command* command);
Action DefineCheckResume(Command* command);
Action DefineLs(Command* command);
Action DefineShow(Command* command);
Action DefineRuns(Command* command);
Action DefineBest(Command* command);
Action DefineSpec(Command* command);
Action DefineWatch(Command* command);
Action DefineWait(Command* command);
Action DefineEdit(Command* command);
Action DefineCancel(Command* command);
Action DefineRm(Command* command);
Action DefineLogs(Command* command);
Action DefineMetrics(Command* command);
Action DefineCompare(Command* command);
Action DefineImport(Command* command);
Action DefineJudge(Command* command);
Action DefineDiff(Command* command);
Action DefineSql(Command* command);
Action DefineTable(Command* command);
Action DefineFigure(Command* command);
Action DefineReport(Command* command);
Action DefineExport(Command* command);
Action DefineGenerate(Command* command);
Action DefineAnalyze(Command* command);
Action DefineAnalyses(Command* command);
Action DefineDataLs(Command* command);
Action DefineDataAdd(Command* command);
Action DefineDataGet(Command* command);
Action DefineDataEncode(Command* command);
Action DefineDataRm(Command* command);
Action DefineArtifactLs(Command* command);
Action DefineArtifactGet(Command* command);
Action DefineModelLs(Command* command);
Action DefineModelAdd(Command* command);
Action DefineModelShow(Command* command);
Action DefineModelRm(Command* command);
Action DefineModelExport(Command* command);
Action DefineWorkers(Command* command);
Action DefineTop(Command* command);
Action DefineWeb(Command* command);
Action DefineQueue(Command* command);
Action DefineQueuePause(Command* command);
Action DefineQueueResume(Command* command);
Action DefineQueueMove(Command* command);
Action DefineClusterSlurm(Command* command);
Action DefineClusterKubernetes(Command* command);
Action DefineLogin(Command* command);
Action DefineLogout(Command* command);
Action DefineWhoami(Command* command);
Action DefineAdminInit(Command* command);
Action DefineAdminRenew(Command* command);
Action DefineAdminUserAdd(Command* command);
Action DefineAdminUserLs(Command* command);
Action DefineAdminUserRole(Command* command);
Action DefineAdminUserPrograms(Command* command);
Action DefineAdminUserRm(Command* command);
Action DefineAdminQuotaLs(Command* command);
Action DefineAdminQuotaSet(Command* command);
Action DefineAdminTokenAdd(Command* command);
Action DefineAdminTokenLs(Command* command);
Action DefineAdminTokenRevoke(Command* command);
Action DefineAdminAudit(Command* command);
Action DefineAdminCheck(Command* command);
Action DefineCompletion(Command* command);
Action DefineHelp(Command* command);

// Help that several commands have in common.
inline constexpr char kJsonHelp[] = "Print the server's message as JSON";
inline constexpr char kExperimentHelp[] = "Experiment: its ID, a unique prefix of it, or its name";
inline constexpr char kCellHelp[] = "Cell of an experiment, EXP/@best, or runs/ID";

// Calls `run` with a connection to the server. `run` returns the exit code, or what went wrong.
int CallServer(const Context& context,
               absl::FunctionRef<absl::StatusOr<int>(Connection* connection)> run);

// Starts the personal server as `ablate up` does without options; returns the exit code.
int StartServer(const Context& context);

// Returns the action of a command that asks the server.
template <typename Options>
Action WithServer(const std::shared_ptr<Options>& options,
                  absl::StatusOr<int> (*run)(const Options&, const Context&, Connection*)) {
  return [options, run](const Context& context) {
    return CallServer(context,
                      [&](Connection* connection) { return run(*options, context, connection); });
  };
}

// The same for a command whose options `make_request` first turns into the request; its error is
// one of the command line.
template <typename Options, typename Request>
Action WithServer(const Command& command, const std::shared_ptr<Options>& options,
                  absl::StatusOr<Request> (*make_request)(const Options&),
                  absl::StatusOr<int> (*run)(const Options&, const Request&, const Context&,
                                             Connection*)) {
  const std::string name = command.FullName();
  return [name, options, make_request, run](const Context& context) {
    const absl::StatusOr<Request> request = make_request(*options);
    if (!request.ok()) {
      context.console.Error(absl::StrCat(name, ": ", request.status().message()));
      return kUsage;
    }
    return CallServer(context, [&](Connection* connection) {
      return run(*options, *request, context, connection);
    });
  };
}

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMMAND_TABLE_H_
