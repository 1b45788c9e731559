#include "server/results/units.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/analysis/metrics.h"
#include "server/report/compare/wording.h"
#include "server/results/arrays.h"
#include "server/rpc/limits.h"

namespace ablate::results {
namespace {

// Returns true if pairs of seeds can't exist, and pairs of sequences could.
bool HasOneRunEach(const report::ComparisonInput& input) {
  for (const report::Axis& axis : input.axes) {
    if (axis.tuned && axis.name != input.by) return false;
  }
  std::set<std::vector<std::string>> settings;
  for (const report::Cell& cell : input.cells) {
    if (!settings.insert(cell.labels).second) return false;
  }
  return input.scale == report::Scale::kDifference;
}

// The analysis that gave a cell its value.
struct Source {
  size_t cell = 0;
  std::string id;
  std::optional<size_t> sequences;  // none: it doesn't have the array
};

bool HasValue(const report::Cell& cell) {
  return cell.outcome == report::RunOutcome::kDone && cell.value.has_value();
}

// Finds the sources of cells' values, and reads their arrays.
class Finder {
 public:
  Finder(storage::Store* store, const rpc::Cancelled& cancelled, TrainedGrid* grid)
      : store_(store), cancelled_(cancelled), grid_(*grid), input_(grid->input) {
    const size_t slash = input_.key.find('/');
    if (slash == std::string::npos) return;
    label_ = input_.key.substr(0, slash);
    number_ = input_.key.substr(slash + 1);
    array_ = absl::StrCat("by_sequence/", number_);
  }

  // Returns why the arrays that exist can't be compared; "" if they can, or if there are none.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& experiments) {
    if (label_.empty()) return "";
    if (absl::Status found = FindSources(experiments); !found.ok()) return found;
    const bool any = std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
      return source.second.sequences.has_value();
    });
    if (!any) return "";
    if (std::string missing = MissingText(); !missing.empty()) return missing;
    auto differing = DifferingText();
    if (!differing.ok() || !differing->empty()) return differing;
    return ReadAll();
  }

 private:
  // Keeps for each cell the newest analysis that has its value.
  absl::Status FindSources(const std::vector<std::string>& experiments) {
    std::map<std::string, std::vector<size_t>> cells;  // with a value, by run
    for (size_t i = 0; i < input_.cells.size(); ++i) {
      if (HasValue(input_.cells[i])) cells[grid_.cells[i].run].push_back(i);
    }
    for (const std::string& experiment : experiments) {
      const auto labelled = store_->LabelledAnalyses(experiment, label_);
      if (!labelled.ok()) return labelled.status();
      for (const storage::LabelledAnalysis& one : *labelled) {
        const auto of_run = cells.find(one.subject.run);
        if (of_run == cells.end()) continue;
        if (input_.at.has_value() && one.subject.step != *input_.at) continue;
        const auto result = analysis::ReadAnalysis(one.id, one.result);
        if (!result.ok()) return result.status();
        for (const size_t cell : of_run->second) AddSource(cell, one.id, *result);
      }
    }
    return absl::OkStatus();
  }

  void AddSource(size_t cell, const std::string& id, const v1::Analysis& result) {
    const auto number = result.numbers().find(number_);
    if (number == result.numbers().end() || !number->second.has_value()) return;
    if (number->second.value() != *input_.cells[cell].value) return;
    Source source{cell, id, {}};
    for (const v1::AnalysisArrayInfo& array : result.arrays()) {
      if (array.name() != array_ || absl::StrJoin(array.axes(), ",") != "sequence") continue;
      if (array.shape_size() == 1) source.sequences = static_cast<size_t>(array.shape(0));
    }
    sources_[cell] = source;
  }

  // Names the cells whose analyses lack the array, or have too few or too many elements.
  std::string MissingText() const {
    std::vector<std::string> without, few, many;
    size_t all = 0;
    for (size_t i = 0; i < input_.cells.size(); ++i) {
      if (!HasValue(input_.cells[i])) continue;
      const std::string& name = grid_.cells[i].name;
      const auto source = sources_.find(i);
      if (source == sources_.end() || !source->second.sequences.has_value()) {
        without.push_back(name);
      } else if (*source->second.sequences < 2) {
        few.push_back(name);
      } else if (*source->second.sequences > kMaxSequences) {
        many.push_back(name);
      } else {
        all += *source->second.sequences;
      }
    }
    constexpr size_t kNamed = 4;
    if (!without.empty()) {
      return absl::StrCat("the analysis of ", report::Enumerated(without, kNamed), " has no array ",
                          array_);
    }
    if (!few.empty()) {
      return absl::StrCat(report::Enumerated(few, kNamed), " read fewer than two sequences");
    }
    if (!many.empty()) {
      return absl::StrCat(report::Enumerated(many, kNamed), " read more than ",
                          text::Grouped(kMaxSequences), " sequences");
    }
    if (all <= rpc::kMaxArrayValues) return "";
    return absl::StrCat("all runs together read more than ", text::Grouped(rpc::kMaxArrayValues),
                        " sequences");
  }

  // Describes the sequences that a cell's analysis reads, except what `scored` and the seed say.
  absl::StatusOr<std::string> ReadBy(const Source& source) const {
    const auto record = store_->GetAnalysis(source.id);
    if (!record.ok()) return record.status();
    auto asked = analysis::ReadAnalysis(source.id, record->request);
    if (!asked.ok()) return asked.status();
    v1::AnalysisInputs& inputs = *asked->mutable_inputs();
    if (!inputs.dataset_sha256().empty()) inputs.clear_dataset();  // equal bytes read the same
    const auto& scored = input_.cells[source.cell].scored;
    const bool generated =
        scored.count("task.documents.dataset") + scored.count("task.text.dataset") == 0;
    // Generated sequences depend on the batch; those of another data set are cut at the context.
    return absl::StrCat(
        *source.sequences, " ", asked->seed(), " ", asked->analysis().SerializeAsString(), " ",
        inputs.SerializeAsString(), generated ? FieldOf(grid_, source.cell, "training.batch") : "",
        inputs.dataset_sha256().empty() ? "" : FieldOf(grid_, source.cell, "model.context"));
  }

  // Names two cells that should have read the same sequences, and haven't.
  absl::StatusOr<std::string> DifferingText() const {
    using Data = std::pair<uint32_t, std::map<std::string, std::string>>;
    std::map<Data, std::pair<std::string, const Source*>> first;
    for (const auto& [cell, source] : sources_) {
      auto read = ReadBy(source);
      if (!read.ok()) return read.status();
      const report::Cell& of = input_.cells[cell];
      const auto [known, added] = first.try_emplace({of.seed, of.scored}, *read, &source);
      if (added || known->second.first == *read) continue;
      const Source& other = *known->second.second;
      const auto name = [this](const Source& one) { return grid_.cells[one.cell].name; };
      const bool unequal = source.sequences != other.sequences;
      return absl::StrCat(
          name(other), " and ", name(source), " read other sequences",
          unequal ? absl::StrCat(": ", *other.sequences, " and ", *source.sequences) : "");
    }
    return "";
  }

  // Sets the values of all cells, or of none.
  absl::StatusOr<std::string> ReadAll() {
    std::map<size_t, std::vector<double>> values;
    for (const auto& [cell, source] : sources_) {
      if (cancelled_()) return rpc::CallCancelled();
      const absl::Status read = Read(source, &values[cell]);
      if (absl::IsDataLoss(read) || absl::IsResourceExhausted(read)) {
        return std::string(read.message());
      }
      if (!read.ok()) return read;
    }
    for (auto& [cell, of] : values) input_.cells[cell].by_sequence = std::move(of);
    input_.unit = report::Unit::kSequence;
    return "";
  }

  absl::Status Read(const Source& source, std::vector<double>* values) const {
    const auto bytes = ReadArtifact(store_, source.id, cancelled_);
    if (!bytes.ok()) return bytes.status();
    const auto file = ParseSafetensors(*bytes);
    if (!file.ok()) return DamagedArrays(source.id, file.status().message());
    std::vector<size_t> shape;
    const absl::Status read = ReadTensor(*file, array_, "sequence", false, &shape, values);
    if (!read.ok()) return DamagedArrays(source.id, read.message());
    const bool finite = std::all_of(values->begin(), values->end(),
                                    [](double value) { return std::isfinite(value); });
    if (finite && values->size() == *source.sequences) return absl::OkStatus();
    return DamagedArrays(source.id,
                         absl::StrCat(array_, " isn't ", *source.sequences, " finite numbers"));
  }

  storage::Store* const store_;
  const rpc::Cancelled& cancelled_;
  TrainedGrid& grid_;
  report::ComparisonInput& input_;
  std::string label_, number_, array_;
  std::map<size_t, Source> sources_;  // by cell
};

}  // namespace

absl::Status FindSequences(storage::Store* store, const std::vector<std::string>& experiments,
                           const rpc::Cancelled& cancelled, TrainedGrid* grid) {
  if (!HasOneRunEach(grid->input)) return absl::OkStatus();
  auto why = Finder(store, cancelled, grid).Run(experiments);
  if (!why.ok()) return why.status();
  grid->input.not_by_sequence = *std::move(why);
  return absl::OkStatus();
}

}  // namespace ablate::results
