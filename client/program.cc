// The whole program but for main.
#include "client/program.h"

#include "client/commands/commands.h"
#include "client/exit_code.h"

namespace ablate::client {
namespace {

constexpr const char* kFooter = R"(Example:
  ablate up
  ablate submit examples/names-norm.yaml --wait
  ablate show names-norm

EXP is experiments/ID, ID, or the beginning of one that only one experiment has;
EXP/CELL is one of its cells. --json prints the server's message.

Exit codes:
  0   done; for wait: every run is DONE or DIVERGED
  1   it failed, or a problem was found; for wait: a run FAILED
  2   what was waited for was cancelled
  64  the command line makes no sense
  69  no server answers, or a part of it is away: try again
  70  for wait: it failed itself, whatever the runs came to

Environment:
  ABLATE_SERVER    where the server is: unix:PATH or localhost:PORT
  ABLATE_HOME      the personal server's folder (else $XDG_DATA_HOME/ablate, ~/.local/share/ablate)
  NO_COLOR         no colours)";

}  // namespace

int RunProgram(const std::vector<std::string>& arguments, const Context& context) {
  CommandLine line("ablate", ABLATE_VERSION,
                   "An ablation lab: experiment files in, trained grids and their numbers out.");
  for (const auto add :
       {AddUp,     AddDown,   AddSubmit, AddLs,       AddShow,    AddRuns,     AddWatch,
        AddWait,   AddCancel, AddRm,     AddLogs,     AddMetrics, AddCompare,  AddTable,
        AddFigure, AddReport, AddExport, AddGenerate, AddData,    AddArtifact, AddWorkers}) {
    add(line.root());
  }
  line.root().Footer(kFooter);
  const int code = line.Run(arguments, context);
  context.console.out->flush();
  if (*context.console.out) return code;
  context.console.Error("writing the output failed");
  return code == kSuccess ? kFailure : code;
}

}  // namespace ablate::client
