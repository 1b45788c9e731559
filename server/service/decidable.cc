#include "server/service/decidable.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/results/trained_grid.h"
#include "server/spec/analysis_numbers.h"
#include "server/spec/axes.h"
#include "server/spec/experiment_analyses.h"
#include "server/spec/field_values.h"

namespace ablate::service {
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
    axis.tuned = plan.tuned;
    input.axes.push_back(std::move(axis));
  }
  for (const spec::ResolvedCell& of : resolution.cells) {
    if (of.seed != resolution.cells.front().seed) continue;
    report::Cell cell;
    for (const auto& [axis, label] : of.labels) cell.labels.push_back(label);
    cell.outcome = report::RunOutcome::kUnfinished;
    cell.scored = spec::ScoredData(of.run.spec(), of.dataset_sha256, 0);
    if (!report::IsOfHeldOutData(input.key)) spec::RemoveEvaluationSize(&cell.scored);
    input.cells.push_back(std::move(cell));
  }
  return input;
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
  if (resolution.cells.empty() || resolution.spec.axes().empty()) return "";
  const report::ComparisonInput input = InputOf(resolution);
  const auto comparison = report::Compare(input, {{}, 0});
  if (!comparison.ok() || comparison->family == 0) return "";
  const size_t seeds = resolution.cells.size() / input.cells.size();
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

}  // namespace ablate::service
