// `ablate ls`: the experiments, newest first.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

constexpr uint32_t kPageSize = 1000;

struct Options {
  std::optional<uint32_t> limit = 100;
  bool json = false;
};

// The newest `limit` experiments over as many pages as that takes. The page token of the last one
// stays, so that one sees that there are more.
absl::StatusOr<v1::ListExperimentsResponse> List(Connection* connection, uint32_t limit) {
  v1::ListExperimentsResponse all;
  v1::ListExperimentsRequest request;
  do {
    const auto missing = limit - static_cast<uint32_t>(all.experiments_size());
    request.set_page_size(std::min(kPageSize, missing));
    absl::StatusOr<v1::ListExperimentsResponse> page = connection->ListExperiments(request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    for (v1::Experiment& experiment : *page->mutable_experiments()) {
      *all.add_experiments() = std::move(experiment);
    }
  } while (!request.page_token().empty() && static_cast<uint32_t>(all.experiments_size()) < limit);
  all.set_next_page_token(request.page_token());
  return all;
}

absl::StatusOr<int> Ls(const Options& options, const Context& context, Connection* connection) {
  const bool everything = options.limit == 0u;
  const uint32_t limit = everything ? std::numeric_limits<int32_t>::max() : *options.limit;
  const absl::StatusOr<v1::ListExperimentsResponse> list = List(connection, limit);
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
