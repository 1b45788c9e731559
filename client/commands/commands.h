// The commands, one file each; every function adds its command to the command line.
#ifndef ABLATE_CLIENT_COMMANDS_COMMANDS_H_
#define ABLATE_CLIENT_COMMANDS_COMMANDS_H_

#include "client/command.h"

namespace ablate::client {

void AddUp(Command root);
void AddDown(Command root);
void AddSubmit(Command root);
void AddLs(Command root);
void AddShow(Command root);
void AddRuns(Command root);
void AddWatch(Command root);
void AddWait(Command root);
void AddCancel(Command root);
void AddRm(Command root);
void AddLogs(Command root);
void AddMetrics(Command root);
void AddCompare(Command root);
void AddTable(Command root);
void AddFigure(Command root);
void AddData(Command root);
void AddArtifact(Command root);
void AddExport(Command root);
void AddReport(Command root);
void AddGenerate(Command root);
void AddWorkers(Command root);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMMANDS_COMMANDS_H_
