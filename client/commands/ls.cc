// `ablate ls`: the experiments, newest first.
#include <cstdint>
#include <memory>
#include <optional>

#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct Options {
  std::optional<uint32_t> limit = 100;
  bool json = false;
};

absl::StatusOr<int> Ls(const Options& options, const Context& context, Connection* connection) {
  const absl::StatusOr<v1::ListExperimentsResponse> list = ListFirst(
      connection, &Connection::ListExperiments, &v1::ListExperimentsResponse::mutable_experiments,
      v1::ListExperimentsRequest(), *options.limit);
  if (!list.ok()) return list.status();
  if (options.json) return PrintJson(context, *list);
  if (list->experiments().empty()) {
    context.console.Info("no experiments yet: `ablate submit FILE` creates one");
    return kSuccess;
  }
  Table table({{"experiment"}, {"state"}, {"runs"}, {"created"}, {"question"}});
  for (const v1::Experiment& experiment : list->experiments()) {
    table.Add({Id(experiment.name()), StateText(experiment), CountsText(experiment.counts()),
               Ago(absl::FromUnixSeconds(experiment.create_time().seconds()), context.now()),
               experiment.spec().question()});
  }
  PrintTable(context, table);
  if (!list->next_page_token().empty()) context.console.Note("there are more: --limit 0 lists all");
  return kSuccess;
}

}  // namespace

Action DefineLs(Command* command) {
  auto options = std::make_shared<Options>();
  command->Option(&options->limit, "--limit,-n", "N", "how many at most, 0 for all [100]");
  command->Flag(&options->json, "--json", "print the server's message");
  command->Footer("Example:\n  ablate ls --json | jq -r '.experiments[].name'");
  return WithServer(options, Ls);
}

}  // namespace ablate::client
