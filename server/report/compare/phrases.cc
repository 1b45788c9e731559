#include "server/report/compare/phrases.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

constexpr size_t kMaxChoices = 3;

// Returns "lr 0.004, wd 0.1", or the labels alone.
std::string ChoiceText(const Choice& choice, const std::vector<std::string>& axes) {
  if (axes.empty()) return absl::StrJoin(choice.labels, ", ");
  std::vector<std::string> parts;
  for (size_t i = 0; i < axes.size(); ++i) {
    parts.push_back(absl::StrCat(axes[i], " ", choice.labels[i]));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string MeasuredIn(const Comparison& comparison) {
  const MetricName name = comparison.Metric();
  std::vector<std::string> remarks;
  if (!name.unit.empty()) {
    remarks.push_back(name.per.empty() ? name.unit : absl::StrCat(name.unit, " per ", name.per));
  }
  if (comparison.scale == Scale::kRatio) remarks.emplace_back("compared as ratios");
  remarks.emplace_back(comparison.better == Better::kLower    ? "lower is better"
                       : comparison.better == Better::kHigher ? "higher is better"
                                                              : "neither direction is better");
  const bool is_key = absl::StrContains(name.text, '/');
  return absl::StrCat(is_key ? name.text : Capitalized(name.text), " (",
                      absl::StrJoin(remarks, ", "), ")");
}

absl::string_view UnitName(Unit unit) {
  switch (unit) {
    case Unit::kSeed:
      return "seed";
    case Unit::kSequence:
      return "sequence";
    case Unit::kItem:
      return "item";
    case Unit::kGroup:
      break;
  }
  return "group";
}

std::string UnitNote(const Comparison& comparison) {
  const bool any = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                               [](const ComparisonRow& row) { return row.pairs.all > 0; });
  if (comparison.unit == Unit::kSeed || !any) return "";
  const std::string units = absl::StrCat(UnitName(comparison.unit), "s");
  return absl::StrCat("pairs are the ", units, " that the models read: intervals ",
                      comparison.exploratory.empty() ? "and p " : "", "are about other ", units,
                      " of the same kind for these very models, not about "
                      "other training seeds");
}

std::string TunedText(const Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return "";
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  if (comparison.choice_key.empty()) return absl::StrCat(", each at its selected ", axes);
  return absl::StrCat(", each at the ", axes, " selected by ", comparison.ChoiceMetric().text);
}

std::string ChosenText(const ComparisonRow& row, const std::vector<std::string>& axes) {
  if (row.chosen.empty()) return "";
  if (row.chosen.size() == 1) return ChoiceText(row.chosen[0], axes);
  std::vector<Choice> choices = row.chosen;
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.seeds > b.seeds; });
  size_t seeds = 0;
  for (const Choice& choice : choices) seeds += choice.seeds;
  std::vector<std::string> parts;
  const std::vector<std::string> unnamed;
  for (size_t i = 0; i < std::min(choices.size(), kMaxChoices); ++i) {
    const bool named = i == 0 || axes.size() > 1;  // a single axis is named once
    parts.push_back(absl::StrCat(ChoiceText(choices[i], named ? axes : unnamed), " (",
                                 choices[i].seeds, "/", seeds, ")"));
  }
  if (choices.size() > kMaxChoices) {
    parts.push_back(absl::StrCat(choices.size() - kMaxChoices, " more"));
  }
  return absl::StrJoin(parts, ", ");
}

std::string NoisierText(const ComparisonRow& row, const ComparisonRow& baseline) {
  const Number& ratio = row.noise_ratio;
  const bool row_is_noisier = !ratio.defined() || ratio.value > 1;
  const ComparisonRow& noisier = row_is_noisier ? row : baseline;
  const ComparisonRow& other = row_is_noisier ? baseline : row;
  if (!ratio.defined() || ratio.value == 0) {
    return absl::StrCat(Quoted(noisier.label), " varies and ", Quoted(other.label), " doesn't");
  }
  const double times = row_is_noisier ? ratio.value : 1 / ratio.value;
  return absl::StrCat(Quoted(noisier.label), " varies ", Plain(times, times < 10 ? 1 : 0),
                      " times as much as ", Quoted(other.label));
}

std::string FamilyText(size_t family) {
  return family > 1 ? absl::StrCat("Holm-adjusted for ", family, " comparisons") : "";
}

}  // namespace ablate::report
