// A compared experiment as a report says it.
#include "server/service/report_contents.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "server/report/compare/windows.h"
#include "server/service/names.h"
#include "server/service/spec_yaml.h"
#include "storage/blobs.h"
#include "storage/sha256.h"

namespace ablate::service {
namespace {

constexpr char kDatasetPath[] = "task.documents.dataset";
constexpr char kStreamsPath[] = "model.init.streams";
constexpr char kByName[] = "by_name";

std::string TimeText(storage::Micros time) {
  if (time == 0) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixMicros(time), absl::UTCTimeZone());
}

// One word for a shell.
std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string("_./=+-").find(c) != std::string::npos;
  });
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Names of the data sets that some cell is trained on.
std::set<std::string> DatasetNames(const TrainedGrid& grid) {
  std::set<std::string> names;
  if (const auto base = grid.base.find(kDatasetPath); base != grid.base.end()) {
    names.insert(base->second);
  }
  for (const report::Cell& cell : grid.input.cells) {
    const auto changed = cell.changed.find(kDatasetPath);
    if (changed != cell.changed.end() && !changed->second.empty()) names.insert(changed->second);
  }
  return names;
}

absl::StatusOr<std::vector<html::DataSet>> DataSetsOf(storage::Store* store,
                                                      const TrainedGrid& grid) {
  std::vector<html::DataSet> sets;
  for (const std::string& name : DatasetNames(grid)) {
    const auto found = FindDataset(store, name, "dataset");
    // A data set may have been deleted, or renamed, since the runs were trained.
    if (absl::IsNotFound(found.status())) continue;
    if (!found.ok()) return found.status();
    sets.push_back({name, found->sha256, found->bytes, found->documents});
  }
  return sets;
}

// Whether all cells draw their initial weights by name, so that equal seeds share them.
bool SharesWeights(const TrainedGrid& grid) {
  const auto base = grid.base.find(kStreamsPath);
  if (base == grid.base.end() || base->second != kByName) return false;
  return std::all_of(grid.input.cells.begin(), grid.input.cells.end(),
                     [](const report::Cell& cell) {
                       const auto changed = cell.changed.find(kStreamsPath);
                       return changed == cell.changed.end() || changed->second == kByName;
                     });
}

void CountCells(const TrainedGrid& grid, html::Provenance* provenance) {
  std::set<std::string> runs;
  for (size_t i = 0; i < grid.cells.size(); ++i) {
    const report::Cell& cell = grid.input.cells[i];
    const bool first = runs.insert(grid.cells[i].run).second;
    if (first) provenance->device_seconds += cell.device_seconds.value_or(0);
    if (grid.cells[i].reused) ++provenance->reused;
    if (cell.trainer.empty()) continue;  // not trained yet
    ++provenance->trainers[cell.trainer];
    ++provenance->versions[cell.version];
    ++provenance->devices[cell.device];
    if (!cell.environment.empty()) ++provenance->environments[cell.environment];
  }
  provenance->cells = grid.cells.size();
  provenance->runs = runs.size();
}

absl::StatusOr<html::Provenance> ProvenanceOf(storage::Store* store, const ComparedGrid& compared,
                                              const v1::CompareRequest& request) {
  const TrainedGrid& grid = compared.grid;
  html::Provenance provenance;
  provenance.owner = grid.record.owner;
  provenance.created = TimeText(grid.record.create_time);
  provenance.ended = TimeText(grid.record.end_time);
  provenance.spec_yaml = SpecYaml(grid.spec);
  provenance.spec_sha256 = storage::Sha256Hex(provenance.spec_yaml);
  auto sets = DataSetsOf(store, grid);
  if (!sets.ok()) return sets.status();
  provenance.data_sets = *std::move(sets);
  CountCells(grid, &provenance);
  provenance.submit_command = absl::StrCat("ablate submit ", grid.record.name, ".yaml --wait");
  v1::CompareRequest again = request;
  again.set_experiment("EXPERIMENT");  // a new submit gets an id of its own
  provenance.report_command = ReportCommand(again);
  return provenance;
}

std::vector<html::WindowColumn> WindowsOf(const report::RowWindows& windows) {
  std::vector<html::WindowColumn> columns;
  for (size_t i = 0; i < windows.windows.size(); ++i) {
    html::WindowColumn column = {report::WindowName(windows.windows[i]), {}};
    for (const std::vector<report::WindowSummary>& row : windows.rows) {
      const report::Summary& over = row[i].over;
      column.entries.push_back({over.mean, over.interval, over.n, row[i].left_out});
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

std::string ReportCommand(const v1::CompareRequest& request) {
  std::string command = absl::StrCat("ablate report ", ShellWord(request.experiment()));
  const auto add = [&command](const char* option, const std::string& value) {
    absl::StrAppend(&command, " ", option, " ", ShellWord(value));
  };
  if (!request.key().empty()) add("--key", request.key());
  if (!request.by().empty()) add("--by", request.by());
  const std::map<std::string, std::string> sorted(request.baseline().begin(),
                                                  request.baseline().end());
  for (const auto& [axis, label] : sorted) add("--baseline", absl::StrCat(axis, "=", label));
  if (request.has_at() && request.at() >= 0) add("--at", absl::StrCat(request.at()));
  return absl::StrCat(command, " -o report.html");
}

absl::StatusOr<html::Experiment> ReportContents(storage::Store* store, const ComparedGrid& compared,
                                                const v1::CompareRequest& request) {
  auto provenance = ProvenanceOf(store, compared, request);
  if (!provenance.ok()) return provenance.status();
  html::Experiment experiment;
  experiment.id = compared.grid.record.id;
  experiment.question = compared.grid.spec.question();
  experiment.read_at =
      compared.at.has_value() ? absl::StrCat("at step ", *compared.at) : "where each run ended";
  experiment.shared_weights = SharesWeights(compared.grid);
  experiment.comparison = compared.comparison;
  for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
    std::vector<html::FieldChange>& changes = experiment.changes.emplace_back();
    for (ChangedField& field : ChangedFields(compared, row)) {
      changes.push_back({std::move(field.path), std::move(field.value), std::move(field.baseline)});
    }
  }
  experiment.windows = WindowsOf(compared.windows);
  experiment.provenance = *std::move(provenance);
  return experiment;
}

}  // namespace ablate::service
