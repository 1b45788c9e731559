#include "client/program.h"

#include <map>

#include "client/command_table.h"

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

Command AddGroup(const CommandGroup& group, Command root) {
  Command added = root.Add(group.name, group.help);
  added.Footer(group.footer);
  return added;
}

}  // namespace

int RunProgram(const std::vector<std::string>& arguments, const Context& context) {
  CommandLine line("ablate", ABLATE_VERSION,
                   "An ablation lab: experiment files in, trained grids and their numbers out.");
  std::map<const CommandGroup*, Command> groups;
  for (const CommandRow& row : CommandTable()) {
    Command parent = line.root();
    if (row.group != nullptr) {
      const auto found = groups.find(row.group);
      parent = found != groups.end() ? found->second : AddGroup(*row.group, parent);
      groups.emplace(row.group, parent);
    }
    Command command = parent.Add(row.name, row.help);
    command.Do(row.define(&command));
  }
  line.root().Footer(kFooter);
  const int code = line.Run(arguments, context);
  context.console.out->flush();
  if (*context.console.out) return code;
  context.console.Error("writing the output failed");
  return code == kSuccess ? kFailure : code;
}

}  // namespace ablate::client
