#include "server/submit/decidable.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/experiment/analysis_numbers.h"
#include "server/experiment/axes.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/field_values.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/power.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/results/trained_grid.h"
#include "storage/store.h"

namespace ablate::submit {
namespace {

// Makes the input of the experiment's comparison, with the unfinished cells of one seed.
report::ComparisonInput InputOf(const spec::Resolution& resolution) {
  report::ComparisonInput input;
  input.key = results::PrimaryMetric(resolution.spec);
  spec::Problems none;
  for (const spec::AxisPlan& plan : spec::ReadAxes(resolution.spec, &none)) {
    report::Axis axis;
    axis.name = plan.name;
    for (const spec::Point& point : plan.points) axis.labels.push_back(point.label);
    axis.tuned = plan.selects();
    input.axes.push_back(std::move(axis));
  }
  for (const spec::ResolvedCell& of : resolution.cells) {
    if (of.seed != resolution.cells.front().seed) continue;
    report::Cell cell;
    for (const auto& [axis, label] : of.labels) cell.labels.push_back(label);
    cell.outcome = report::RunOutcome::kUnfinished;
    cell.scored = spec::ScoredData(of.run.spec(), of.dataset_sha256, 0, input.key);
    input.cells.push_back(std::move(cell));
  }
  return input;
}

struct PlannedComparison {
  report::ComparisonInput input;
  report::Comparison comparison;
  size_t seeds = 0;
};

// Returns the comparison of the experiment; nothing if nothing is compared.
std::optional<PlannedComparison> PlanComparison(const spec::Resolution& resolution) {
  if (resolution.cells.empty() || resolution.spec.axes().empty()) return std::nullopt;
  report::ComparisonInput input = InputOf(resolution);
  auto comparison = report::Compare(input, {{}, 0});
  if (!comparison.ok() || comparison->family == 0) return std::nullopt;
  const size_t seeds = resolution.cells.size() / input.cells.size();
  return PlannedComparison{std::move(input), *std::move(comparison), seeds};
}

// Spread of the paired differences in a stored experiment.
struct Spread {
  std::string experiment;  // id
  size_t pairs = 0;        // of the row with most
  double deviation = 0;    // pooled over the rows
  report::Scale scale = report::Scale::kDifference;
};

// Returns true if both have the same settings at the same places, whatever their values.
bool HaveSameNames(const google::protobuf::Struct& a, const google::protobuf::Struct& b) {
  return a.fields_size() == b.fields_size() &&
         std::all_of(a.fields().begin(), a.fields().end(), [&b](const auto& field) {
           const auto other = b.fields().find(field.first);
           return other != b.fields().end() &&
                  HaveSameNames(field.second.struct_value(), other->second.struct_value());
         });
}

// Returns true if both have no program, or the same one, perhaps in two versions of its files.
bool AreOneProgram(const v1::BaseSpec& a, const v1::BaseSpec& b) {
  return std::equal(a.program().command().begin(), a.program().command().end(),
                    b.program().command().begin(), b.program().command().end()) &&
         HaveSameNames(a.settings(), b.settings());
}

// Returns true if the spread of one experiment is to be expected in the other, too.
bool IsOfKind(const v1::ExperimentSpec& stored, const v1::ExperimentSpec& planned) {
  using google::protobuf::util::MessageDifferencer;
  return results::PrimaryMetric(stored) == results::PrimaryMetric(planned) &&
         results::ScaleOf(stored, results::PrimaryMetric(stored)) ==
             results::ScaleOf(planned, results::PrimaryMetric(planned)) &&
         stored.base().model_from() == planned.base().model_from() &&
         AreOneProgram(stored.base(), planned.base()) &&
         MessageDifferencer::Equals(stored.base().task(), planned.base().task()) &&
         MessageDifferencer::Equals(stored.base().model(), planned.base().model());
}

// Returns the spread in one experiment; nothing if it has too few pairs, or is damaged.
std::optional<Spread> SpreadOf(storage::Store* store, results::StoredExperiment experiment) {
  constexpr size_t kLeastPairs = 3;
  Spread spread;
  spread.experiment = experiment.record.id;
  results::GridQuery query;
  query.analyses = results::AnalysisNumbers::kOfComparison;
  const auto grid = results::LoadGrid(store, std::move(experiment), query, [] { return false; });
  if (!grid.ok()) return std::nullopt;
  report::CompareOptions options;
  options.resamples = 0;
  options.tests = false;
  const auto comparison = report::Compare(grid->input, options);
  if (!comparison.ok() || comparison->unit != report::Unit::kSeed) return std::nullopt;
  spread.scale = comparison->scale;
  double squares = 0, freedom = 0;
  for (const report::ComparisonRow& row : comparison->rows) {
    const report::PairedStatistics& difference = row.difference;
    if (row.is_baseline || difference.n < kLeastPairs || !difference.deviation.defined()) continue;
    const auto own = static_cast<double>(difference.n - 1);
    squares += own * difference.deviation.value * difference.deviation.value;
    freedom += own;
    spread.pairs = std::max(spread.pairs, difference.n);
  }
  if (!(squares > 0)) return std::nullopt;
  spread.deviation = std::sqrt(squares / freedom);
  return spread;
}

// Returns true if both have the same axes, as an experiment and its extension by seeds do.
bool HaveSameAxes(const v1::ExperimentSpec& a, const v1::ExperimentSpec& b) {
  return std::equal(a.axes().begin(), a.axes().end(), b.axes().begin(), b.axes().end(),
                    google::protobuf::util::MessageDifferencer::Equals);
}

// Returns the spread in the newest experiment of the kind, among the newest of all; in one with the
// same axes, if there is any.
absl::StatusOr<std::optional<Spread>> FindSpread(const lookup::View& view,
                                                 const v1::ExperimentSpec& planned) {
  constexpr uint32_t kNewest = 50;
  constexpr size_t kTries = 5;  // comparisons
  ASSIGN_OR_RETURN(const auto records, view.store->ListExperiments(view.viewer, {}, "", kNewest));
  std::vector<results::StoredExperiment> of_kind;
  for (const storage::ExperimentRecord& record : records) {
    results::StoredExperiment stored{record, {}};
    if (record.state == storage::ExperimentState::kEnded &&
        stored.spec.ParseFromString(record.spec) && IsOfKind(stored.spec, planned)) {
      of_kind.push_back(std::move(stored));
    }
  }
  std::stable_partition(of_kind.begin(), of_kind.end(),
                        [&planned](const results::StoredExperiment& stored) {
                          return HaveSameAxes(stored.spec, planned);
                        });
  if (of_kind.size() > kTries) of_kind.resize(kTries);
  for (results::StoredExperiment& stored : of_kind) {
    if (auto spread = SpreadOf(view.store, std::move(stored))) return spread;
  }
  return std::nullopt;
}

// Returns true if runs of one seed are compared by sequence in this number of an analysis.
bool IsBySequence(const v1::ExperimentSpec& spec, const std::string& key) {
  const size_t slash = key.find('/');
  if (slash == std::string::npos) return false;
  const auto entry = spec::EntryWithNumbers(spec, key.substr(0, slash));
  return entry.has_value() && results::ScaleOf(spec, key) == report::Scale::kDifference &&
         spec::IsStoredBySequence(entry->analysis, key.substr(slash + 1));
}

}  // namespace

std::string UndecidableNote(const spec::Resolution& resolution) {
  const std::optional<PlannedComparison> planned = PlanComparison(resolution);
  if (!planned.has_value()) return "";
  const report::ComparisonInput& input = planned->input;
  const report::Comparison* const comparison = &planned->comparison;
  const size_t seeds = planned->seeds;
  const size_t rows = comparison->family;
  const size_t needed = report::LeastSeedsForSignFlip(rows);
  if (seeds >= needed) return "";
  const double least =
      std::min(1.0, static_cast<double>(rows) * std::pow(2.0, 1 - static_cast<double>(seeds)));
  if (seeds == 1 && comparison->tuned_axes.empty() && IsBySequence(resolution.spec, input.key)) {
    return absl::StrCat("1 seed: ", input.key,
                        " is compared by sequence, one run per setting, which shows nothing about "
                        "other training seeds");
  }
  return absl::StrCat(seeds, seeds == 1 ? " seed" : " seeds",
                      " can't establish a difference: ", "the permutation test",
                      rows > 1 ? absl::StrCat(", Holm-adjusted for ", rows, " comparisons,") : "",
                      " has p of at least ", absl::StrFormat("%.3g", least), "; ", needed,
                      " seeds are needed");
}

absl::StatusOr<std::string> DetectableNote(const lookup::View& view,
                                           const spec::Resolution& resolution) {
  const std::optional<PlannedComparison> planned = PlanComparison(resolution);
  if (!planned.has_value()) return "";
  const size_t rows = planned->comparison.family;
  const report::Number effect = report::LeastDetectableEffect(planned->seeds, rows);
  if (!effect.defined()) return "";
  ASSIGN_OR_RETURN(const auto spread, FindSpread(view, resolution.spec));
  const std::string head =
      absl::StrCat("least detectable difference of ", planned->input.key, ": ");
  const std::string tail =
      absl::StrCat(" (", planned->seeds, " seeds, power 80 %, level 5 %",
                   rows > 1 ? absl::StrCat(", Holm-adjusted for ", rows, " comparisons") : "", ")");
  if (!spread.has_value()) {
    return absl::StrFormat(
        "%sunknown, because no stored experiment shows the spread of this metric for the same %s; "
        "it is %.2g standard deviations of the paired differences%s",
        head, resolution.spec.base().has_program() ? "program" : "task and model", effect.value,
        tail);
  }
  const double least = effect.value * spread->deviation;
  const bool ratio = spread->scale == report::Scale::kRatio;
  return absl::StrFormat(
      "%sabout %s%.2g%s, if seeds vary as in %s, whose settings and steps may differ (%d seeds)",
      head, ratio ? "a factor of " : "", ratio ? std::exp(least) : least, tail, spread->experiment,
      spread->pairs);
}

}  // namespace ablate::submit
