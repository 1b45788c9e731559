// What `submit` says about an experiment that was created, or would be.
#include "client/submit_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/setting_table.h"
#include "client/table.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

constexpr int kNamedCells = 3;

uint64_t SeedCount(const v1::Seeds& seeds) {
  if (seeds.list_size() > 0) return static_cast<uint64_t>(seeds.list_size());
  return seeds.has_count() ? seeds.count() : 1;
}

// `3 placement × 5 lr × 12 seeds`, and how many cells that is before exclusions.
std::pair<std::string, uint64_t> Product(const v1::ExperimentSpec& spec) {
  std::vector<std::string> factors;
  uint64_t product = 1;
  for (const v1::Axis& axis : spec.axes()) {
    const int settings = axis.settings_size() + axis.values_size();
    factors.push_back(absl::StrCat(settings, " ", AxisName(axis)));
    product *= static_cast<uint64_t>(settings);
  }
  const uint64_t seeds = SeedCount(spec.seeds());
  factors.push_back(Count(seeds, "seed"));
  return {absl::StrJoin(factors, " × "), product * seeds};
}

// A large grid's cells are not all in the answer, but they are counted in it.
uint64_t CellCount(const v1::CreateExperimentResponse& response) {
  const v1::RunCounts& counts = response.experiment().counts();
  const uint64_t counted = uint64_t{counts.queued()} + counts.running() + counts.done() +
                           counts.diverged() + counts.failed() + counts.cancelled();
  return std::max(counted, static_cast<uint64_t>(response.cells_size()));
}

// Whether every cell is in the answer: a large grid's are not.
bool HasAllCells(const v1::CreateExperimentResponse& response) {
  return CellCount(response) == static_cast<uint64_t>(response.cells_size());
}

std::string RunsText(const v1::CreateExperimentResponse& response) {
  std::set<std::string> runs;
  for (const v1::Cell& cell : response.cells()) runs.insert(cell.run());
  const uint64_t cells = CellCount(response);
  const std::string reused = absl::StrCat(" (", text::Grouped(response.reused()), " reused)");
  // Which cells share a run is known when all of them are here and have one.
  const bool known = HasAllCells(response) && runs.count("") == 0;
  if (!known || runs.size() == cells) return Count(cells, "run") + reused;
  return absl::StrCat(Count(cells, "cell"), ", ", Count(runs.size(), "run"), reused);
}

std::string EstimateText(const v1::Estimate& estimate) {
  const absl::Duration wall = absl::Seconds(estimate.wall_time().seconds()) +
                              absl::Nanoseconds(estimate.wall_time().nanos());
  return absl::StrCat("about ", Duration(wall), ", ", Bytes(estimate.bytes()),
                      estimate.measured() ? "" : " (a guess)");
}

}  // namespace

std::string Headline(const v1::CreateExperimentResponse& response) {
  const v1::Experiment& experiment = response.experiment();
  const auto [product, all] = Product(experiment.spec());
  const uint64_t cells = CellCount(response);
  const std::string excluded =
      cells < all ? absl::StrCat(" − ", text::Grouped(all - cells), " excluded") : "";
  const std::string name =
      experiment.name().empty() ? experiment.spec().name() : Id(experiment.name());
  return absl::StrCat(name, "   ", product, excluded, " = ", RunsText(response), "   ",
                      EstimateText(response.estimate()));
}

std::string GridTable(const v1::CreateExperimentResponse& response, int width) {
  struct Counts {
    uint64_t cells = 0;
    uint64_t reused = 0;
  };
  std::map<Labels, Counts> counts;
  for (const v1::Cell& cell : response.cells()) {
    Counts& count = counts[Labels(cell.labels().begin(), cell.labels().end())];
    ++count.cells;
    if (cell.reused()) ++count.reused;
  }
  std::vector<Column> columns = LabelColumns(response.experiment().spec());
  for (const char* title : {"parameters", "cells", "reused"}) columns.push_back({title, true});
  Table table(std::move(columns));
  const bool all = HasAllCells(response);
  for (const v1::SettingParameters& setting : response.parameters()) {
    const Labels labels(setting.labels().begin(), setting.labels().end());
    std::vector<std::string> row = LabelRow(response.experiment().spec(), labels);
    const Counts& count = counts[labels];
    row.push_back(text::Grouped(setting.parameters()));
    for (const uint64_t number : {count.cells, count.reused}) {
      row.push_back(all ? text::Grouped(number) : "—");
    }
    table.Add(std::move(row));
  }
  return table.Render(width);
}

std::string EvaluationText(const v1::CreateExperimentResponse& response) {
  const auto& cells = response.differs_only_in_evaluation();
  if (cells.empty()) return "";
  const int named = std::min(cells.size(), kNamedCells);
  return absl::StrCat(Count(static_cast<uint64_t>(cells.size()), "cell"),
                      " would be trained again only for another evaluation or other checkpoints: ",
                      absl::StrJoin(cells.begin(), cells.begin() + named, ", "),
                      cells.size() > named ? ", …" : "");
}

}  // namespace ablate::client
