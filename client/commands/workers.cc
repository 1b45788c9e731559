// `ablate workers`: the processes that train and analyse.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/pages.h"
#include "client/table.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

absl::StatusOr<v1::ListWorkersResponse> ListAll(Connection* connection) {
  return AllPages(
      &v1::ListWorkersResponse::mutable_workers, v1::ListWorkersRequest(),
      [&](const v1::ListWorkersRequest& page) { return connection->ListWorkers(page); });
}

int Workers(bool json, const Context& context) {
  const auto connection = Connect(context);
  if (!connection.ok()) return Fail(context, connection.status());
  const absl::StatusOr<v1::ListWorkersResponse> list = ListAll(connection->get());
  if (!list.ok()) return Fail(context, list.status());
  if (json) {
    *context.console.out << ToJson(*list);
    return kSuccess;
  }
  Table table({{"worker"},
               {"role"},
               {"state"},
               {"device"},
               {"lanes", true},
               {"runs", true},
               {"since"},
               {"build"}});
  for (const v1::Worker& worker : list->workers()) {
    const std::string since =
        worker.has_attach_time()
            ? Ago(absl::FromUnixSeconds(worker.attach_time().seconds()), context.now())
            : "";
    const std::string state = worker.stalled().empty()
                                  ? v1::WorkerState::Value_Name(worker.state())
                                  : absl::StrCat("STALLED: ", worker.stalled());
    table.Add({Id(worker.name()), v1::WorkerRole::Value_Name(worker.role()), state, worker.device(),
               text::Grouped(worker.lanes()),
               text::Grouped(static_cast<uint64_t>(worker.runs_size())), since, worker.build()});
  }
  *context.console.out << table.Render(context.console.table_width());
  return kSuccess;
}

}  // namespace

void AddWorkers(Command root) {
  auto json = std::make_shared<bool>(false);
  Command command = root.Add("workers", "List the workers: what they are for, and what they do");
  command.Flag(json.get(), "--json", "print the server's message, all pages as one");
  command.Footer("Example:\n  ablate workers");
  command.Do([json](const Context& context) { return Workers(*json, context); });
}

}  // namespace ablate::client
