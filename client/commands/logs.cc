// `ablate logs EXP/CELL`: prints the output of a run's program, or the history of a run.
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kFollowPause = absl::Milliseconds(500);

struct LogsOptions {
  std::string run;
  bool follow = false;
  bool history = false;
  bool json = false;
};

// Prints what a run's program has written; until the run has ended if `follow`, also through a
// restart of the server.
absl::StatusOr<int> PrintLog(const LogsOptions& options, const std::string& run,
                             const Context& context, Connection* connection) {
  v1::ReadRunLogRequest request;
  request.set_run(run);
  const auto read_to_end = [&](const std::function<void()>& alive) -> absl::Status {
    while (true) {
      ASSIGN_OR_RETURN(const v1::ReadRunLogResponse log, connection->Call(kReadRunLog, request));
      alive();
      *context.console.out << log.text() << std::flush;
      if (log.complete() || (log.text().empty() && !options.follow)) return absl::OkStatus();
      request.set_position(log.next());
      if (log.text().empty()) context.sleep(kFollowPause);
    }
  };
  RETURN_IF_ERROR(options.follow ? KeepWatching(context, read_to_end) : read_to_end([] {}));
  return kSuccess;
}

absl::StatusOr<int> PrintHistory(const LogsOptions& options, const std::string& run,
                                 const Context& context, Connection* connection) {
  v1::ListRunEventsRequest request;
  request.set_run(run);
  ASSIGN_OR_RETURN(const v1::ListRunEventsResponse events,
                   connection->Call(kListRunEvents, request));
  if (options.json) return PrintJson(context, events);
  Table table({{"time"}, {"what"}, {"step", true}, {"worker"}, {"message"}});
  for (const v1::RunEvent& event : events.events()) {
    const absl::Time time = absl::FromUnixSeconds(event.time().seconds());
    table.Add({absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone()), event.kind(),
               std::to_string(event.step()), Id(event.worker()), event.message()});
  }
  // Messages are the point of the table: they are not shortened.
  *context.console.out << table.Render(0);
  return kSuccess;
}

absl::StatusOr<int> Logs(const LogsOptions& options, const Context& context,
                         Connection* connection) {
  ASSIGN_OR_RETURN(const std::string name, FindRun(connection, options.run));
  v1::GetRunRequest request;
  request.set_name(name);
  const absl::StatusOr<v1::Run> run = connection->Call(kGetRun, request);
  if (!run.ok()) return ExplainRunError(connection, run.status(), options.run);
  const bool has_log = run->resolved_spec().spec().has_program();
  if (options.follow && (options.history || options.json)) {
    return absl::InvalidArgumentError(
        "--follow: can't be combined with --history or --json; remove one of them");
  }
  if (options.follow && !has_log) {
    return absl::InvalidArgumentError(
        absl::StrCat("--follow: ", options.run,
                     " isn't a run of a program, which alone writes a log; expected one"));
  }
  return has_log && !options.history && !options.json
             ? PrintLog(options, name, context, connection)
             : PrintHistory(options, name, context, connection);
}

}  // namespace

Action DefineLogs(Command* command) {
  auto options = std::make_shared<LogsOptions>();
  command->Argument(&options->run, "EXP/CELL", kCellHelp);
  command->Flag(&options->follow, "-f,--follow",
                "Print also what is written from now on, until the run ends");
  command->Flag(&options->history, "--history",
                "Print the history of the run, as for a run of a model");
  command->Flag(&options->json, "--json", "Print the history as JSON");
  command->Footer(
      "A run of a program has a log: its standard output and error, of all attempts, at most the "
      "last 4 MB. Other runs have a history: when they were queued, granted, saved and ended.\n\n"
      "Examples:\n  ablate logs names-norm/post-lr0.01-s42\n  ablate logs my-program/s0 -f");
  return WithServer(options, Logs);
}

}  // namespace ablate::client
