// `ablate logs EXP/CELL`: what happened to a run.
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/table.h"

namespace ablate::client {
namespace {

struct Options {
  std::string run;
  bool json = false;
};

int Logs(const Options& options, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<std::string> run = FindRun(connection->get(), options.run);
  if (!run.ok()) return Fail(context, run.status());
  v1::ListRunEventsRequest request;
  request.set_run(*run);
  const absl::StatusOr<v1::ListRunEventsResponse> events = (*connection)->ListRunEvents(request);
  if (!events.ok()) return Fail(context, ExplainRunError(events.status(), options.run));
  if (options.json) {
    *context.console.out << ToJson(*events);
    return kSuccess;
  }
  Table table({{"time"}, {"what"}, {"step", true}, {"worker"}, {"message"}});
  for (const v1::RunEvent& event : events->events()) {
    const absl::Time time = absl::FromUnixSeconds(event.time().seconds());
    table.Add({absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone()), event.kind(),
               std::to_string(event.step()), Id(event.worker()), event.message()});
  }
  // Messages are what one looks for: they are not shortened.
  *context.console.out << table.Render(0);
  return kSuccess;
}

}  // namespace

void AddLogs(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("logs", "Show a run's history: queued, granted, lost, failed and why");
  command.Argument(&options->run, "EXP/CELL", "a cell, or runs/ID");
  command.Flag(&options->json, "--json", "print the server's message");
  command.Footer("Example:\n  ablate logs names-norm/post-lr0.01-s42");
  command.Do([options](const Context& context) { return Logs(*options, context); });
}

}  // namespace ablate::client
