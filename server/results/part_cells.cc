#include "server/results/part_cells.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/errors.h"
#include "server/results/analyzed_cells.h"
#include "server/results/operand.h"
#include "storage/run_query.h"

namespace ablate::results {
namespace {

constexpr absl::string_view kBest = "@best";
constexpr absl::string_view kChosen = "@chosen";

// Returns the query for the best cell by `key`.
storage::RunQuery BestBy(const std::string& key, bool higher) {
  storage::RunQuery query;
  query.order_by = storage::RunKey{storage::RunKey::Kind::kLast, key};
  query.descending = higher;
  query.limit = 1;
  storage::RunCondition done, measured;
  done.kind = measured.kind = storage::RunCondition::Kind::kTest;
  done.test.key.kind = storage::RunKey::Kind::kState;
  done.test.constant = static_cast<double>(storage::RunState::kDone);
  measured.test.key = *query.order_by;
  measured.test.op = storage::RunTest::Op::kExists;
  query.where.operands = {std::move(done), std::move(measured)};
  return query;
}

absl::StatusOr<storage::CellRecord> FindBest(storage::Store* store, const storage::Viewer& viewer,
                                             const StoredExperiment& experiment,
                                             absl::string_view field) {
  const std::string& id = experiment.record.id;
  const std::string key = PrimaryMetric(experiment.spec);
  const report::Better better = BetterOf(experiment.spec, key);
  const bool measured =
      spec::EntryWithNumbers(experiment.spec, key.substr(0, key.find('/'))).has_value();
  if (measured || better == report::Better::kNeither) {
    return lookup::InvalidField(
        field,
        absl::StrCat(kBest, " is by report.primary, and ", key,
                     measured ? " is a number of an analysis" : " has no better direction"),
        "a cell or a setting");
  }
  storage::RunQuery query = BestBy(key, better == report::Better::kHigher);
  query.viewer = viewer;
  query.experiment = id;
  ASSIGN_OR_RETURN(auto found, store->FindCells(query));
  if (!found.empty()) return std::move(found.front().cell);
  return absl::NotFoundError(absl::StrCat("no run of ", id, " is done and has ", key));
}

}  // namespace

absl::StatusOr<std::vector<storage::CellRecord>> CellsOfPart(const lookup::View& view,
                                                             const StoredExperiment& experiment,
                                                             const std::string& part,
                                                             absl::string_view field,
                                                             const lookup::Cancelled& cancelled) {
  const std::string& id = experiment.record.id;
  if (part == kBest) {
    ASSIGN_OR_RETURN(auto best, FindBest(view.store, view.viewer, experiment, field));
    return std::vector<storage::CellRecord>{std::move(best)};
  }
  if (part == kChosen) {
    ASSIGN_OR_RETURN(auto analyzed, FindAnalyzedCells(view.store, experiment, cancelled));
    if (!analyzed.chosen.empty()) return std::move(analyzed.chosen);
    return absl::NotFoundError(absl::StrCat("no run of ", id, " is chosen: none is done"));
  }
  if (!part.empty() && part[0] == '@') {
    return lookup::InvalidField(field, absl::StrCat(reflect::Quoted(part), " isn't a part of ", id),
                                absl::StrCat(kBest, " or ", kChosen, ", or a cell or a setting"));
  }
  ASSIGN_OR_RETURN(auto cells, view.store->ListCells(id, 0, std::numeric_limits<uint32_t>::max()));
  ASSIGN_OR_RETURN(const auto selected,
                   PartNames(experiment.spec).Select(cells, {id, part}, field));
  std::vector<storage::CellRecord> of_part;
  for (const size_t cell : selected) of_part.push_back(std::move(cells[cell]));
  return of_part;
}

}  // namespace ablate::results
