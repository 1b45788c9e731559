// `ablate workers`: the processes that train and analyze.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct WorkersOptions {
  bool json = false;
};

// Returns the device in words, and its use and its memory's errors if they are known.
std::string DeviceText(const v1::Worker& worker) {
  if (!worker.has_device_use()) return worker.device();
  const v1::DeviceUse& use = worker.device_use();
  std::string text = absl::StrCat(worker.device(), "; ", use.utilization(), " % busy, ",
                                  Bytes(use.used_bytes()), " in use");
  if (use.watts() > 0) absl::StrAppend(&text, ", ", use.watts(), " W");
  if (use.others() > 0) absl::StrAppend(&text, ", ", Count(use.others(), "other program"));
  if (use.ecc_errors() > 0) absl::StrAppend(&text, ", ", Count(use.ecc_errors(), "memory error"));
  return text;
}

absl::StatusOr<int> Workers(const WorkersOptions& options, const Context& context,
                            Connection* connection) {
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse list,
                   ListAll(connection, kListWorkers, &v1::ListWorkersResponse::mutable_workers));
  if (options.json) return PrintJson(context, list);
  Table table({{"worker"},
               {"role"},
               {"state"},
               {"device"},
               {"lanes", true},
               {"runs", true},
               {"since"},
               {"build"}});
  for (const v1::Worker& worker : list.workers()) {
    const std::string since =
        worker.has_attach_time() ? Ago(worker.attach_time(), context.now()) : "";
    const std::string state = worker.stalled().empty()
                                  ? v1::WorkerState::Value_Name(worker.state())
                                  : absl::StrCat("STALLED: ", worker.stalled());
    table.Add({Id(worker.name()), v1::WorkerRole::Value_Name(worker.role()), state,
               DeviceText(worker), text::Grouped(worker.lanes()),
               text::Grouped(static_cast<uint64_t>(worker.runs_size()) + worker.hidden_runs()),
               since, worker.build()});
  }
  for (const v1::PendingPilot& pilot : list.pending_pilots()) {
    table.Add({Id(pilot.worker()), v1::WorkerRole::Value_Name(v1::WorkerRole::train),
               pilot.reason().empty() ? "PENDING" : absl::StrCat("PENDING: ", pilot.reason()),
               absl::StrCat("a machine of ", pilot.cluster()), "", "",
               Ago(pilot.since(), context.now()), ""});
  }
  return PrintTable(context, table);
}

}  // namespace

Action DefineWorkers(Command* command) {
  auto options = std::make_shared<WorkersOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate workers");
  return WithServer(options, Workers);
}

}  // namespace ablate::client
