#include "server/results/units.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/analysis/metrics.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/report/compare/wording.h"
#include "server/results/arrays.h"

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

constexpr absl::string_view kAxes = "part,sequence";
constexpr double kRounding = 1e-9;  // of sums in another order

// The analysis that gave a cell its value.
struct Source {
  size_t cell = 0;
  std::string id;
  std::optional<size_t> sequences;  // none: it doesn't have the array
  bool other_data = false;          // it read another data set than the run's
  std::string read = {};            // what it read, except what `scored` and the seed say
};

bool HasValue(const report::Cell& cell) {
  return cell.outcome == report::RunOutcome::kDone && cell.value.has_value();
}

// Finds the sources of cells' values, and reads their arrays.
class Finder {
 public:
  Finder(storage::Store* store, const lookup::Cancelled& cancelled, const TrainedGrid& grid,
         report::ComparisonInput* input)
      : store_(store), cancelled_(cancelled), grid_(grid), input_(*input) {
    const size_t slash = input_.key.find('/');
    if (slash == std::string::npos) return;
    label_ = input_.key.substr(0, slash);
    number_ = input_.key.substr(slash + 1);
    array_ = absl::StrCat("by_sequence/", number_);
  }

  // Returns why the arrays that exist can't be compared; "" if they can, or if there are none.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& experiments) {
    if (label_.empty()) return "";
    RETURN_IF_ERROR(FindSources(experiments));
    // A prompt is one sequence by intention.
    const bool any = std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
      return source.second.sequences.value_or(0) > 1;
    });
    if (!any) return "";
    if (std::string missing = MissingText(); !missing.empty()) return missing;
    for (auto& [cell, source] : sources_) {
      ASSIGN_OR_RETURN(source.read, ReadBy(source));
    }
    if (std::string differing = DifferingText(); !differing.empty()) return differing;
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
      ASSIGN_OR_RETURN(const auto labelled, store_->LabelledAnalyses(experiment, label_));
      for (const storage::LabelledAnalysis& one : labelled) {
        const auto of_run = cells.find(one.subject.run);
        if (of_run == cells.end()) continue;
        if (input_.at.has_value() && one.subject.step != *input_.at) continue;
        ASSIGN_OR_RETURN(const auto result, analysis::ReadAnalysis(one.id, one.result));
        for (const size_t cell : of_run->second) AddSource(cell, one.id, result);
      }
    }
    return absl::OkStatus();
  }

  void AddSource(size_t cell, const std::string& id, const v1::Analysis& result) {
    const auto number = result.numbers().find(number_);
    if (number == result.numbers().end() || !number->second.has_value()) return;
    if (number->second.value() != *input_.cells[cell].value) return;
    Source source{cell, id, {}, !result.inputs().dataset_sha256().empty()};
    for (const v1::AnalysisArrayInfo& array : result.arrays()) {
      if (array.name() != array_ || absl::StrJoin(array.axes(), ",") != kAxes) continue;
      if (array.shape_size() == 2) source.sequences = static_cast<size_t>(array.shape(1));
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
                          array_, "; `ablate analyze` makes it again");
    }
    if (!few.empty()) {
      return absl::StrCat(report::Enumerated(few, kNamed), " read fewer than two sequences");
    }
    if (!many.empty()) {
      return absl::StrCat(report::Enumerated(many, kNamed), " read more than ",
                          text::Grouped(kMaxSequences), " sequences");
    }
    if (all <= lookup::kMaxArrayValues) return "";
    return absl::StrCat("all runs together read more than ", text::Grouped(lookup::kMaxArrayValues),
                        " sequences");
  }

  // Describes the sequences that a cell's analysis reads, except what `scored` and the seed say.
  absl::StatusOr<std::string> ReadBy(const Source& source) const {
    ASSIGN_OR_RETURN(const auto record, store_->GetAnalysis(source.id));
    ASSIGN_OR_RETURN(auto asked, analysis::ReadAnalysis(source.id, record.request));
    v1::AnalysisInputs& inputs = *asked.mutable_inputs();
    if (!inputs.dataset_sha256().empty()) inputs.clear_dataset();  // equal bytes read the same
    const auto& scored = input_.cells[source.cell].scored;
    const bool generated =
        scored.count("task.documents.dataset") + scored.count("task.text.dataset") == 0;
    // Generated sequences depend on the batch; those of another data set are cut at the context.
    return absl::StrCat(
        *source.sequences, " ", asked.seed(), " ", asked.analysis().SerializeAsString(), " ",
        inputs.SerializeAsString(), generated ? FieldOf(grid_, source.cell, "training.batch") : "",
        inputs.dataset_sha256().empty() ? "" : FieldOf(grid_, source.cell, "model.context"));
  }

  // Names two cells that should have read the same sequences, and haven't.
  std::string DifferingText() const {
    using Data = std::pair<uint32_t, std::map<std::string, std::string>>;
    std::map<Data, const Source*> first;
    for (const auto& [cell, source] : sources_) {
      const report::Cell& of = input_.cells[cell];
      const auto [known, added] = first.try_emplace({of.seed, of.scored}, &source);
      const Source& other = *known->second;
      if (added || other.read == source.read) continue;
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
    std::map<size_t, std::vector<double>> parts;  // [2, sequences]
    for (const auto& [cell, source] : sources_) {
      if (cancelled_()) return lookup::CallCancelled();
      const absl::Status read = Read(source, &parts[cell]);
      if (absl::IsDataLoss(read) || absl::IsResourceExhausted(read)) {
        return std::string(absl::StripPrefix(read.message(), "key: "));
      }
      if (!read.ok()) return read;
    }
    for (const auto& [cell, values] : parts) {
      report::Cell& to = input_.cells[cell];
      const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
      to.by_sequence.assign(values.begin(), middle);
      to.sequence_weights.assign(middle, values.end());
      to.sequences = Identity(sources_.at(cell));
    }
    input_.unit = report::Unit::kSequence;
    return "";
  }

  // Returns a text that is equal for cells that read the same sequences. Windows of a text, and
  // sequences of another data set, don't depend on the run's seed.
  std::string Identity(const Source& source) const {
    if (source.other_data) return source.read;
    const report::Cell& cell = input_.cells[source.cell];
    std::string read = absl::StrCat(source.read, " of ",
                                    absl::StrJoin(cell.scored, ",", absl::PairFormatter("=")));
    if (cell.scored.count("task.text.dataset") == 0) absl::StrAppend(&read, " ", cell.seed);
    return read;
  }

  absl::Status Read(const Source& source, std::vector<double>* values) const {
    ASSIGN_OR_RETURN(const auto bytes, ReadArtifact(store_, source.id, cancelled_));
    const auto file = ParseSafetensors(bytes);
    if (!file.ok()) return DamagedArrays(source.id, file.status().message());
    std::vector<size_t> shape;
    const absl::Status read = ReadTensor(*file, array_, kAxes, false, &shape, values);
    if (!read.ok()) return DamagedArrays(source.id, read.message());
    const bool finite = std::all_of(values->begin(), values->end(),
                                    [](double value) { return std::isfinite(value); });
    if (!finite || values->size() != 2 * *source.sequences) {
      return DamagedArrays(
          source.id, absl::StrCat(array_, " isn't 2 × ", *source.sequences, " finite numbers"));
    }
    const auto mean_from = [&](size_t first) {
      const auto begin = values->begin() + static_cast<ptrdiff_t>(first * *source.sequences);
      return std::accumulate(begin, begin + static_cast<ptrdiff_t>(*source.sequences), 0.0) /
             static_cast<double>(*source.sequences);
    };
    const double value = *input_.cells[source.cell].value;
    const double apart = std::abs(mean_from(0) - value) / std::max(1.0, std::abs(value));
    if (apart <= kRounding && std::abs(mean_from(1) - 1) <= kRounding) return absl::OkStatus();
    return DamagedArrays(source.id, absl::StrCat("the mean of ", array_, " isn't ", number_));
  }

  storage::Store* const store_;
  const lookup::Cancelled& cancelled_;
  const TrainedGrid& grid_;
  report::ComparisonInput& input_;
  std::string label_, number_, array_;
  std::map<size_t, Source> sources_;  // by cell
};

}  // namespace

absl::Status FindSequences(storage::Store* store, const std::vector<std::string>& experiments,
                           const lookup::Cancelled& cancelled, const TrainedGrid& grid,
                           report::ComparisonInput* input) {
  if (!HasOneRunEach(*input)) return absl::OkStatus();
  ASSIGN_OR_RETURN(input->not_by_sequence, Finder(store, cancelled, grid, input).Run(experiments));
  return absl::OkStatus();
}

}  // namespace ablate::results
