// A stored experiment as the statistics want it: its grid, what every run gave, and its curves.
#include "server/service/trained_grid.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/report/compare/wording.h"
#include "server/service/document_facts.h"
#include "server/service/errors.h"
#include "server/service/grid_axes.h"
#include "server/service/grid_values.h"
#include "server/service/limits.h"
#include "server/service/names.h"
#include "server/service/page.h"
#include "server/spec/fields.h"
#include "text/utf8.h"

namespace ablate::service {
namespace {

report::RunOutcome OutcomeOf(storage::RunState state) {
  switch (state) {
    case storage::RunState::kDone:
      return report::RunOutcome::kDone;
    case storage::RunState::kDiverged:
      return report::RunOutcome::kDiverged;
    case storage::RunState::kFailed:
      return report::RunOutcome::kFailed;
    case storage::RunState::kQueued:
    case storage::RunState::kLeased:
      return report::RunOutcome::kUnfinished;
    case storage::RunState::kCancelled:
      break;
  }
  return report::RunOutcome::kMissing;
}

absl::Status CancelledError() { return absl::CancelledError("the call was cancelled"); }

double Seconds(storage::Micros micros) { return static_cast<double>(micros) / 1e6; }

// Reads the cells of one experiment.
class Loader {
 public:
  Loader(storage::Store* store, const GridQuery& query, const Cancelled& cancelled)
      : store_(store), query_(query), cancelled_(cancelled) {}

  absl::StatusOr<TrainedGrid> Run() {
    if (absl::Status read = ReadExperiment(); !read.ok()) return read;
    while (true) {
      const auto first = static_cast<uint32_t>(grid_.cells.size());
      auto page = store_->ListCells(query_.experiment, first, kCellsAtOnce);
      if (!page.ok()) return page.status();
      if (absl::Status added = AddCells(*page); !added.ok()) return added;
      if (page->size() < kCellsAtOnce) break;
    }
    if (absl::Status present = CheckPresence(); !present.ok()) return present;
    return std::move(grid_);
  }

 private:
  absl::Status ReadExperiment() {
    auto record = store_->GetExperiment(query_.experiment);
    if (!record.ok()) return record.status();
    if (!grid_.spec.ParseFromString(record->spec)) {
      return absl::DataLossError(absl::StrCat("the spec of ", record->id, " can't be read"));
    }
    grid_.record = *std::move(record);
    if (!query_.key.empty() && !text::IsPrintable(query_.key, storage::kMaxKeyBytes)) {
      return InvalidField("key", absl::StrCat(reflect::Quoted(query_.key), " is no key"),
                          "a metric's key such as eval/loss");
    }
    value_ = {query_.key.empty() ? PrimaryMetric(grid_.spec) : query_.key, query_.at};
    report::ComparisonInput& input = grid_.input;
    input.key = value_.key;
    input.better = BetterOf(grid_.spec, value_.key);
    input.axes = AxesOf(grid_.spec, false);
    input.baseline = query_.baseline;
    input.by = query_.by;
    return CheckAgainstAxes(input.axes, query_.by, query_.baseline);
  }

  absl::Status AddCells(const std::vector<storage::CellRecord>& cells) {
    std::vector<std::string> runs;
    runs.reserve(cells.size());
    for (const storage::CellRecord& cell : cells) runs.push_back(cell.run);
    const auto summaries = store_->Summaries(runs);
    if (!summaries.ok()) return summaries.status();
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cancelled_()) return CancelledError();
      if (absl::Status added = AddCell(cells[i], (*summaries)[i]); !added.ok()) return added;
    }
    return absl::OkStatus();
  }

  absl::Status AddCell(const storage::CellRecord& record, const storage::RunSummaries& summaries) {
    const auto run = store_->GetRun(record.run);
    if (!run.ok()) return run.status();
    report::Cell cell;
    for (const auto& [axis, label] : record.labels) cell.labels.push_back(label);
    cell.seed = record.seed;
    cell.outcome = OutcomeOf(run->state);
    if (cell.outcome == report::RunOutcome::kDone) {
      auto value = ReadValue(store_, value_, record.run, summaries);
      if (!value.ok() && !absl::IsDataLoss(value.status())) return value.status();
      if (value.ok()) {
        cell.value = *value;
        if (done_.empty()) done_ = record.run;
      } else {
        cell.outcome = report::RunOutcome::kMissing;
        cell.damage = std::string(value.status().message());
        any_damage_ = true;
      }
      any_value_ = any_value_ || cell.value.has_value();
    }
    if (absl::Status read = ReadCombination(cell.labels, *run); !read.ok()) return read;
    cell.changed = changed_;
    cell.scored = scored_;
    Describe(*run, &cell);
    grid_.input.cells.push_back(std::move(cell));
    grid_.cells.push_back(record);
    return absl::OkStatus();
  }

  // Seeds of one combination follow each other and differ in nothing else.
  absl::Status ReadCombination(const std::vector<std::string>& labels,
                               const storage::RunRecord& run) {
    if (!grid_.cells.empty() && labels == labels_) return absl::OkStatus();
    v1::RunSpec spec;
    if (!spec.ParseFromString(run.spec)) {
      return absl::DataLossError("the spec of a run can't be read");
    }
    if (grid_.cells.empty()) FillBase(spec.spec().training().device() == v1::Device::cuda);
    labels_ = labels;
    changed_ = spec::Difference(spec::ValuesOf(spec.spec()), grid_.base);
    // Where the store has no data sets their names have to do.
    const std::string& name = spec.spec().task().documents().dataset();
    const std::string& data = run.dataset_blob.empty() ? name : run.dataset_blob;
    const auto longest = LongestDocument(name, spec.spec().model().context());
    if (!longest.ok()) return longest.status();
    scored_ = spec::ScoredData(spec.spec(), data, *longest);
    // How many batches an evaluation has is no matter to a metric of training.
    if (!report::IsOfHeldOutData(value_.key)) scored_.erase("evaluation.batches");
    return absl::OkStatus();
  }

  // Characters of a data set's longest document; 0 if not known. A text that can't be read is an
  // error once contexts differ: verdicts depend on whether they cut other documents.
  absl::StatusOr<uint64_t> LongestDocument(const std::string& name, uint32_t context) {
    if (name.empty()) return 0;
    const auto [known, added] = documents_.try_emplace(name);
    Documents& documents = known->second;
    if (added) {
      documents.context = context;
      const auto dataset = FindDataset(store_, name, "dataset");
      if (dataset.ok()) documents.lengths = LengthsOf(store_, *dataset);
    }
    if (documents.lengths.ok()) return documents.lengths->longest;
    if (context != documents.context) return documents.lengths.status();
    return 0;
  }

  // The base resolved on the device kind of the first cell: all that was `auto` is one kind.
  void FillBase(bool cuda) {
    v1::BaseSpec base = grid_.spec.base();
    spec::FillDefaults(cuda, &base);
    grid_.base = spec::ValuesOf(base);
    if (cuda) grid_.input.axes = AxesOf(grid_.spec, true);
  }

  void Describe(const storage::RunRecord& run, report::Cell* cell) const {
    cell->parameters = static_cast<int64_t>(run.parameters);
    cell->trainer = run.trainer;
    cell->version = run.build;
    cell->device = run.device;
    cell->environment = run.environment;
    if (run.spent.device_time <= 0) return;
    const double seconds = Seconds(run.spent.device_time);
    cell->device_seconds = seconds;
    cell->contended_seconds = Seconds(run.spent.contended_time);
    if (run.spent.tokens > 0) {
      cell->tokens_per_second = static_cast<double>(run.spent.tokens) / seconds;
    }
  }

  absl::Status CheckPresence() const {
    // With damage it is unknown what there was.
    if (any_value_ || any_damage_) return absl::OkStatus();
    if (!done_.empty()) return NoSuchValue(store_, query_.experiment, value_, done_);
    if (query_.key.empty()) return absl::OkStatus();
    const auto keys = KeysOf(store_, query_.experiment);
    if (!keys.ok()) return keys.status();
    // Before the first point nothing is known to be wrong.
    const bool known = keys->empty() || std::binary_search(keys->begin(), keys->end(), value_.key);
    return known ? absl::OkStatus() : NoSuchKey("key", value_.key, query_.experiment, *keys);
  }

  storage::Store* const store_;
  const GridQuery& query_;
  const Cancelled& cancelled_;
  TrainedGrid grid_;
  ValueQuery value_;
  std::string done_;  // some run that is DONE
  bool any_value_ = false;
  bool any_damage_ = false;
  // Of the combination read last:
  std::vector<std::string> labels_;
  spec::FieldValues changed_, scored_;
  struct Documents {
    absl::StatusOr<DocumentLengths> lengths = DocumentLengths();
    uint32_t context = 0;  // of the first combination that has them
  };
  std::map<std::string, Documents> documents_;  // by data set
};

}  // namespace

std::vector<std::vector<size_t>> CellsOfRows(const TrainedGrid& grid,
                                             const report::Comparison& comparison) {
  using Labels = std::map<std::string, std::string>;
  std::map<std::pair<Labels, uint32_t>, size_t> places;
  for (size_t i = 0; i < grid.cells.size(); ++i) {
    const storage::CellRecord& cell = grid.cells[i];
    places[{Labels(cell.labels.begin(), cell.labels.end()), cell.seed}] = i;
  }
  std::vector<std::vector<size_t>> rows;
  for (const report::ComparisonRow& row : comparison.rows) {
    std::vector<size_t>& cells = rows.emplace_back();
    for (const report::SeedRun& run : row.runs) {
      Labels labels;
      for (size_t i = 0; i < row.labels.size(); ++i) labels[comparison.row_axes[i]] = row.labels[i];
      for (size_t i = 0; i < run.chosen.size(); ++i) {
        labels[comparison.tuned_axes[i]] = run.chosen[i];
      }
      cells.push_back(places.at({labels, run.seed}));
    }
  }
  return rows;
}

std::string PrimaryMetric(const v1::ExperimentSpec& spec) {
  return spec.report().has_primary() ? spec.report().primary() : "eval/loss";
}

report::Better BetterOf(const v1::ExperimentSpec& spec, const std::string& key) {
  const bool named = spec.report().has_better() && key == PrimaryMetric(spec);
  const bool higher = named ? spec.report().better() == v1::Better::higher : key == "eval/accuracy";
  return higher ? report::Better::kHigher : report::Better::kLower;
}

absl::StatusOr<TrainedGrid> LoadGrid(storage::Store* store, const GridQuery& query,
                                     const Cancelled& cancelled) {
  return Loader(store, query, cancelled).Run();
}

absl::Status VisitCurves(storage::Store* store, const TrainedGrid& grid, const std::string& key,
                         const std::vector<size_t>& cells, const Cancelled& cancelled,
                         const std::function<absl::Status(size_t cell, const Points&)>& visit,
                         Damages* damages) {
  for (const size_t cell : cells) {
    if (cancelled()) return CancelledError();
    Points points;
    const absl::Status read = store->ReadSeries(
        {grid.cells[cell].run, key},
        [&](const std::vector<uint32_t>& steps, const std::vector<double>& values) {
          points.steps.insert(points.steps.end(), steps.begin(), steps.end());
          points.values.insert(points.values.end(), values.begin(), values.end());
          return !cancelled();
        });
    if (damages != nullptr && absl::IsDataLoss(read)) {
      damages->Add(read);
      continue;
    }
    if (!read.ok()) return read;
    if (points.steps.empty()) continue;
    if (absl::Status visited = visit(cell, points); !visited.ok()) return visited;
  }
  return absl::OkStatus();
}

}  // namespace ablate::service
