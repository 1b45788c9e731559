// `ablate queue`: whose runs wait, why, and when they begin; and what changes that.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct QueueOptions {
  bool json = false;
};

// Returns when the next run begins: "now", "in 3 min to 5 min", or "" if that is unknown.
std::string Begins(const v1::QueuedExperiment& row) {
  if (!row.has_latest()) return "";
  const absl::Duration latest = ToDuration(row.latest());
  if (latest < absl::Seconds(1)) return "now";
  return absl::StrCat("in ", Duration(ToDuration(row.soonest())), " to ", Duration(latest));
}

absl::StatusOr<int> ShowQueue(const QueueOptions& options, const Context& context,
                              Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListQueueResponse list, connection->Call(kListQueue, {}));
  if (options.json) return PrintJson(context, list);
  Table table({{"experiment"},
               {"owner"},
               {"priority"},
               {"queued", true},
               {"running", true},
               {"begins"},
               {"waits"}});
  for (const v1::QueuedExperiment& row : list.experiments()) {
    table.Add({row.experiment().empty() ? "(private)" : Id(row.experiment()), row.owner(),
               v1::Priority::Value_Name(row.priority()), text::Grouped(row.queued()),
               text::Grouped(row.running()), Begins(row), row.waits()});
  }
  const int code = PrintTable(context, table);
  if (list.left_out() > 0) {
    context.console.Note(
        absl::StrCat(Count(list.left_out(), "more experiment"), " have queued runs"));
  }
  return code;
}

struct QueueChange {
  std::vector<std::string> names;
  std::string end;
  bool json = false;
};

absl::StatusOr<int> Change(const QueueChange& options, v1::UpdateExperimentRequest request,
                           const char* done, const Context& context, Connection* connection) {
  int code = kSuccess;
  for (const std::string& text : options.names) {
    const auto name = ResolveExperimentName(connection, text, Shortened::kAllowed);
    if (name.ok()) request.set_name(*name);
    const auto changed = name.ok() ? connection->Call(kUpdateExperiment, request) : name.status();
    if (!changed.ok()) {
      code = Fail(context, changed.status());
    } else if (options.json) {
      PrintJson(context, *changed);
    } else {
      context.console.Info(absl::StrCat(Id(*name), " ", done));
    }
  }
  return code;
}

absl::StatusOr<int> Pause(const QueueChange& options, const Context& context,
                          Connection* connection) {
  v1::UpdateExperimentRequest request;
  request.set_paused(true);
  return Change(options, request, "is paused; runs that lanes train go on", context, connection);
}

absl::StatusOr<int> Resume(const QueueChange& options, const Context& context,
                           Connection* connection) {
  v1::UpdateExperimentRequest request;
  request.set_paused(false);
  return Change(options, request, "proceeds", context, connection);
}

absl::StatusOr<v1::UpdateExperimentRequest> ReadMove(const QueueChange& options) {
  v1::UpdateExperimentRequest request;
  v1::QueueEnd::Value end = v1::QueueEnd::unspecified;
  if (!v1::QueueEnd::Value_Parse(options.end, &end) || end == v1::QueueEnd::unspecified) {
    return absl::InvalidArgumentError(
        absl::StrCat("END: \"", options.end, "\"; expected first or last"));
  }
  request.set_move(end);
  return request;
}

absl::StatusOr<int> Move(const QueueChange& options, const v1::UpdateExperimentRequest& request,
                         const Context& context, Connection* connection) {
  return Change(options, request,
                request.move() == v1::QueueEnd::first ? "comes first among its owner's"
                                                      : "comes last among its owner's",
                context, connection);
}

}  // namespace

Action DefineQueue(Command* command) {
  auto options = std::make_shared<QueueOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  return WithServer(options, ShowQueue);
}

Action DefineQueuePause(Command* command) {
  auto options = std::make_shared<QueueChange>();
  command->Arguments(&options->names, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate queue pause names-norm");
  return WithServer(options, Pause);
}

Action DefineQueueResume(Command* command) {
  auto options = std::make_shared<QueueChange>();
  command->Arguments(&options->names, "EXP", kExperimentHelp);
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate queue resume names-norm");
  return WithServer(options, Resume);
}

Action DefineQueueMove(Command* command) {
  auto options = std::make_shared<QueueChange>();
  options->names.resize(1);
  command->Argument(&options->names.front(), "EXP", kExperimentHelp);
  command->Argument(&options->end, "END",
                    "End of its owner's queue of the same priority: first or last");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Another priority: `ablate edit EXP --priority background`.\n\n"
      "Example:\n  ablate queue move names-norm first");
  return WithServer(*command, options, ReadMove, Move);
}

}  // namespace ablate::client
