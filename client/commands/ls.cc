// `ablate ls`: the experiments, newest first.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct LsOptions {
  std::optional<uint32_t> limit = 100;
  std::string owner;
  std::vector<std::string> tags;
  bool mine = false;
  bool archived = false;
  bool json = false;
};

// Whose are asked for; empty: everybody's.
absl::StatusOr<std::string> OwnerOf(const LsOptions& options, Connection* connection) {
  if (!options.mine) return options.owner;
  ASSIGN_OR_RETURN(const auto who, connection->Call(kWhoAmI, {}));
  return who.user();
}

std::string NothingText(const LsOptions& options, const std::string& owner) {
  if (!options.tags.empty()) {
    return absl::StrCat("no experiment has the tag ", absl::StrJoin(options.tags, " and the tag "),
                        options.archived ? "" : "; --archived lists archived ones, too");
  }
  if (!owner.empty()) return absl::StrCat(Id(owner), " has no experiments");
  return options.archived ? "no experiments yet: `ablate submit FILE` creates one"
                          : "no experiments: `ablate submit FILE` creates one, --archived lists "
                            "archived ones";
}

// Returns the ID, with the name after it if the experiment was renamed.
std::string NameText(const v1::Experiment& experiment) {
  const std::string id = Id(experiment.name());
  std::string text =
      IsNamedAfter(experiment) ? id : absl::StrCat(id, " = ", experiment.spec().name());
  if (experiment.archived()) absl::StrAppend(&text, " (archived)");
  return text;
}

// Returns the first experiments, at most --limit, that have every tag.
absl::StatusOr<v1::ListExperimentsResponse> ListTagged(const LsOptions& options,
                                                       v1::ListExperimentsRequest request,
                                                       Connection* connection) {
  const bool several = options.tags.size() > 1;
  if (!options.tags.empty()) request.set_tag(options.tags.front());
  auto list =
      ListFirst(connection, kListExperiments, &v1::ListExperimentsResponse::mutable_experiments,
                std::move(request), several ? 0 : *options.limit);
  if (!list.ok() || !several) return list;
  // The server selects by one tag.
  const auto lacks_one = [&options](const v1::Experiment& one) {
    return !std::all_of(options.tags.begin(), options.tags.end(), [&one](const std::string& tag) {
      return std::count(one.tags().begin(), one.tags().end(), tag) > 0;
    });
  };
  auto* found = list->mutable_experiments();
  found->erase(std::remove_if(found->begin(), found->end(), lacks_one), found->end());
  const int limit = static_cast<int>(*options.limit);
  if (limit > 0 && found->size() > limit) {
    // As in ListFirst, a sign that there are more.
    list->set_next_page_token("more");
    found->DeleteSubrange(limit, found->size() - limit);
  }
  return list;
}

absl::StatusOr<int> Ls(const LsOptions& options, const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const std::string owner, OwnerOf(options, connection));
  v1::ListExperimentsRequest request;
  request.set_owner(owner);
  request.set_archived(options.archived);
  ASSIGN_OR_RETURN(const auto list, ListTagged(options, std::move(request), connection));
  if (options.json) return PrintJson(context, list);
  if (list.experiments().empty()) {
    context.console.Info(NothingText(options, owner));
    return kSuccess;
  }
  const bool owners = ShowsOwners(*connection, list.experiments());
  Table table({{"experiment"},
               {"owner", false, !owners},
               {"state"},
               {"runs"},
               {"created"},
               {"tags", false, /*optional=*/true},
               {"changed", false, /*optional=*/true},
               {"question"}});
  for (const v1::Experiment& experiment : list.experiments()) {
    table.Add({NameText(experiment), owners ? OwnerText(experiment) : "", StateText(experiment),
               CountsText(experiment.counts()), Ago(experiment.create_time(), context.now()),
               absl::StrJoin(experiment.tags(), ", "), absl::StrJoin(experiment.changes(), " "),
               experiment.spec().question()});
  }
  PrintTable(context, table);
  if (!list.next_page_token().empty())
    context.console.Note("more experiments exist; --limit 0 lists all");
  return kSuccess;
}

}  // namespace

Action DefineLs(Command* command) {
  auto options = std::make_shared<LsOptions>();
  command->Option(&options->owner, "--owner", "NAME", "List only experiments of this user [all]");
  command->Flag(&options->mine, "--mine", "List only your own experiments");
  command->Options(&options->tags, "--tag", "TAG",
                   "List only experiments with this tag; given several times, with all of them");
  command->Flag(&options->archived, "--archived", "List also archived experiments that have ended");
  command->Option(&options->limit, "--limit,-n", "N", "List at most N, 0 for all [100]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "changed: differences from the file, by --set, --seeds and --axis.\n\n"
      "An archived experiment is listed while it is ACTIVE, and marked (archived).\n\n"
      "Examples:\n  ablate ls --mine\n  ablate ls --tag paper --tag lr\n  ablate ls --json | jq -r "
      "'.experiments[].name'");
  return WithServer(options, Ls);
}

}  // namespace ablate::client
