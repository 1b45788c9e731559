// `ablate logs EXP/CELL`: prints the history of a run.
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct LogsOptions {
  std::string run;
  bool json = false;
};

absl::StatusOr<int> Logs(const LogsOptions& options, const Context& context,
                         Connection* connection) {
  ASSIGN_OR_RETURN(const std::string run, FindRun(connection, options.run));
  v1::ListRunEventsRequest request;
  request.set_run(run);
  const absl::StatusOr<v1::ListRunEventsResponse> events =
      connection->Call(kListRunEvents, request);
  if (!events.ok()) return ExplainRunError(connection, events.status(), options.run);
  if (options.json) return PrintJson(context, *events);
  Table table({{"time"}, {"what"}, {"step", true}, {"worker"}, {"message"}});
  for (const v1::RunEvent& event : events->events()) {
    const absl::Time time = absl::FromUnixSeconds(event.time().seconds());
    table.Add({absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone()), event.kind(),
               std::to_string(event.step()), Id(event.worker()), event.message()});
  }
  // Messages are the point of the table: they are not shortened.
  *context.console.out << table.Render(0);
  return kSuccess;
}

}  // namespace

Action DefineLogs(Command* command) {
  auto options = std::make_shared<LogsOptions>();
  command->Argument(&options->run, "EXP/CELL", kCellHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate logs names-norm/post-lr0.01-s42");
  return WithServer(options, Logs);
}

}  // namespace ablate::client
