// `ablate analyses`: lists analyses of trained models.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/analysis_kinds.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/analysis_text.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/output/table.h"

namespace ablate::client {
namespace {

struct AnalysesOptions {
  std::string target;
  std::optional<uint32_t> limit = 100;
  bool json = false;
};

// The experiment or run whose analyses are listed, and the cells of its runs.
struct Parent {
  std::string name;  // empty: all
  std::map<std::string, std::string> cells;
  bool is_part = false;  // only these cells are wanted of the experiment
};

absl::StatusOr<Parent> ParentOf(const std::string& experiment,
                                const absl::StatusOr<v1::ListRunsResponse>& runs, bool is_part) {
  if (!runs.ok()) return runs.status();
  Parent parent = {experiment, {}, is_part};
  for (const v1::RunRow& row : runs->rows()) parent.cells.emplace(row.run(), row.cell());
  return parent;
}

absl::StatusOr<Parent> FindParent(Connection* connection, const std::string& text) {
  if (text.empty() || absl::StartsWith(text, "runs/")) return Parent{text, {}, false};
  if (const std::optional<CellName> cell = ParseCellName(text)) {
    return ParentOf(cell->experiment, ListPart(connection, *cell), /*is_part=*/true);
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, FindExperiment(connection, text));
  return ParentOf(experiment.name(), ListAllRuns(connection, experiment.name()),
                  /*is_part=*/false);
}

bool IsOf(const Parent& parent, const v1::Analysis& analysis) {
  return std::any_of(
      analysis.subjects().begin(), analysis.subjects().end(),
      [&](const v1::AnalysisSubject& subject) { return parent.cells.count(subject.run()) > 0; });
}

// Lists the first `limit` analyses, 0 for all. Those of a part are chosen of the experiment's,
// because an analysis has labels in an experiment.
absl::StatusOr<v1::ListAnalysesResponse> ListOf(Connection* connection, const Parent& parent,
                                                uint32_t limit) {
  v1::ListAnalysesRequest request;
  request.set_parent(parent.name);
  auto list = ListFirst(connection, kListAnalyses, &v1::ListAnalysesResponse::mutable_analyses,
                        std::move(request), parent.is_part ? 0 : limit);
  if (!list.ok() || !parent.is_part) return list;
  v1::ListAnalysesResponse chosen;
  for (v1::Analysis& analysis : *list->mutable_analyses()) {
    if (!IsOf(parent, analysis)) continue;
    if (limit > 0 && static_cast<uint32_t>(chosen.analyses_size()) == limit) {
      chosen.set_next_page_token("more");
      break;
    }
    *chosen.add_analyses() = std::move(analysis);
  }
  return chosen;
}

// Such as "pre-s1@1000, post-s1@1000", or of many the first and how many more: "pre-s1@1000 +29".
std::string SubjectsText(const v1::Analysis& analysis, const Parent& parent) {
  constexpr size_t kMostNamed = 2;
  std::vector<std::string> subjects;
  for (const v1::AnalysisSubject& subject : analysis.subjects()) {
    const auto cell = parent.cells.find(subject.run());
    const std::string& name = cell == parent.cells.end() ? subject.run() : cell->second;
    subjects.push_back(absl::StrCat(name, "@", subject.step()));
  }
  if (subjects.size() <= kMostNamed) return absl::StrJoin(subjects, ", ");
  return absl::StrCat(subjects[0], " +", subjects.size() - 1);
}

Table MakeTable(const v1::ListAnalysesResponse& list, const Parent& parent, bool owners,
                absl::Time now) {
  Table table({{"analysis"},
               {"kind"},
               {"label", false, /*optional=*/true},
               {"subjects"},
               {"state"},
               {"progress", true},
               {"created"},
               {"owner", false, !owners},
               {"failure", false, /*optional=*/true}});
  for (const v1::Analysis& analysis : list.analyses()) {
    table.Add({Id(analysis.name()), AnalysisKindName(analysis.analysis()),
               absl::StrJoin(analysis.labels(), ", "), SubjectsText(analysis, parent),
               v1::AnalysisState::Value_Name(analysis.state()), ProgressText(analysis),
               Ago(analysis.create_time(), now), owners ? OwnerText(analysis) : "",
               analysis.failure()});
  }
  return table;
}

absl::StatusOr<int> Analyses(const AnalysesOptions& options, const Context& context,
                             Connection* connection) {
  ASSIGN_OR_RETURN(const Parent parent, FindParent(connection, options.target));
  ASSIGN_OR_RETURN(const v1::ListAnalysesResponse list, ListOf(connection, parent, *options.limit));
  if (options.json) return PrintJson(context, list);
  if (list.analyses().empty()) {
    context.console.Info("no analyses yet: `ablate analyze KIND EXP/CELL` makes one");
    return kSuccess;
  }
  PrintTable(context,
             MakeTable(list, parent, ShowsOwners(*connection, list.analyses()), context.now()));
  if (!list.next_page_token().empty())
    context.console.Note("more analyses exist; --limit 0 lists all");
  return kSuccess;
}

}  // namespace

Action DefineAnalyses(Command* command) {
  auto options = std::make_shared<AnalysesOptions>();
  command->OptionalArgument(&options->target, "EXP",
                            "Experiment, EXP/SETTING, EXP/CELL or runs/ID that was analyzed [all]");
  command->Option(&options->limit, "--limit,-n", "N", "List at most N, 0 for all [100]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "The newest come first. A subject is a model and the step of its checkpoint; without EXP it "
      "is named by its run. A label is the experiment's name for an analysis.\n\n"
      "`ablate cancel analyses/ID` stops an analysis. The command that made it prints it again.\n\n"
      "Example:\n  ablate analyses names-norm");
  return WithServer(options, Analyses);
}

}  // namespace ablate::client
