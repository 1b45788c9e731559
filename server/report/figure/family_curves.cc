// Curves of a family of metrics at one step: mean and band of each setting over blocks (`depth`) or
// over levels of a perturbation (`levels`).
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analyzed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/family.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {
namespace {

constexpr double kLogSpan = 100;  // a factor, as in ValueAxis

struct FamilyData {
  bool log = false;        // logarithmic axis
  bool geometric = false;  // means, and intervals of logarithms
  std::vector<ReducedSetting> settings;
  bool embedding = false;               // some value is at place 0
  size_t nonfinite = 0;                 // values left out
  size_t zeros = 0;                     // values that a logarithmic axis can't show
  std::optional<uint32_t> first, last;  // of the settings' steps
};

// Returns true if no value is negative and the positive ones span a factor of 100: a gradient that
// vanished completely doesn't flatten the others.
bool IsLogarithmic(const std::vector<FamilySetting>& settings) {
  Extent all, positive;
  for (const FamilySetting& setting : settings) {
    for (const FamilySeed& seed : setting.seeds) {
      for (const auto& [place, value] : seed.values) {
        all.Add(value);
        if (value > 0) positive.Add(value);
      }
    }
  }
  return !positive.empty() && all.low() >= 0 && positive.high() / positive.low() >= kLogSpan;
}

// Returns true if the family is of norms, which are compared as ratios, and all values are
// positive. An arithmetic mean's interval could go below 0.
bool IsPositive(const Input& input, Along along) {
  if (report::ScaleOfMetric(KeyAt(along, input.key, 1), input.comparison->source) !=
      report::Scale::kRatio)
    return false;
  const auto positive = [](const auto& value) { return !(value.second <= 0); };
  return std::all_of(input.family.begin(), input.family.end(), [&](const FamilySetting& setting) {
    return std::all_of(setting.seeds.begin(), setting.seeds.end(), [&](const FamilySeed& seed) {
      return std::all_of(seed.values.begin(), seed.values.end(), positive);
    });
  });
}

ReducedCurve ReduceFamily(const FamilySetting& setting, FamilyData* data) {
  ReducedCurve curve;
  curve.converged = setting.seeds.size();
  std::map<double, std::vector<double>> by_place;
  for (const FamilySeed& seed : setting.seeds) {
    ThinLine line;
    line.seed = seed.seed;
    for (const auto& [place, value] : seed.values) {
      std::vector<double>& finite = by_place[place];
      const bool zero = data->log && value == 0;
      data->nonfinite += std::isfinite(value) ? 0 : 1;
      data->zeros += zero ? 1 : 0;
      if (std::isfinite(value)) finite.push_back(value);
      line.x.push_back(place);
      line.y.push_back(std::isfinite(value) && !zero ? value : kNone);
    }
    if (setting.seeds.size() <= kMaxSeedLines) curve.seeds.push_back(std::move(line));
  }
  for (const auto& [place, values] : by_place) AddMean(place, values, data->geometric, &curve);
  if (by_place.empty()) return curve;
  // Read by axes of whole numbers.
  curve.first_step = static_cast<uint32_t>(by_place.begin()->first);
  curve.last_step = static_cast<uint32_t>(by_place.rbegin()->first);
  data->embedding = data->embedding || by_place.begin()->first == 0;
  return curve;
}

FamilyData DataOf(const Input& input, Along along) {
  FamilyData data;
  data.log = IsLogarithmic(input.family);
  data.geometric = data.log || IsPositive(input, along);
  for (const FamilySetting& setting : input.family) {
    data.settings.push_back({setting.label, setting.style, {ReduceFamily(setting, &data)}});
    if (setting.seeds.empty()) continue;
    const uint32_t step = setting.step.value_or(0);
    data.first = std::min(data.first.value_or(step), step);
    data.last = std::max(data.last.value_or(step), step);
  }
  return data;
}

// Returns "at step 100", or if the settings have different steps "at steps 100 to 500".
std::string StepText(const FamilyData& data) {
  const uint32_t first = data.first.value_or(0), last = data.last.value_or(0);
  if (first == last) return absl::StrCat("at step ", last);
  return absl::StrCat("at the last step that all seeds of a setting have, ", first, " to ", last);
}

std::string FamilyFootnote(const Input& input, const FamilyData& data) {
  std::vector<std::string> statements = {
      absl::StrCat(StepText(data), ", ", MeanText(input, data.geometric))};
  if (data.nonfinite > 0) {
    statements.push_back(
        absl::StrCat(report::Counted(data.nonfinite, "value"), " not finite, left out"));
  }
  if (data.zeros > 0) {
    statements.push_back(
        absl::StrCat(report::Counted(data.zeros, "value"), " of 0, drawn as a gap"));
  }
  return CurvesFootnote(input, std::move(statements), LeftOutOf(input.family));
}

// Returns means without a seed, with their type, and seeds' values without an interval.
std::string FamilyCsv(const Input& input, Along along, const FamilyData& data) {
  std::string csv =
      absl::StrCat("key,setting,step,", along == Along::kBlocks ? "position" : "level",
                   ",seed,value,low,high,mean\n");
  for (size_t s = 0; s < input.family.size(); ++s) {
    const FamilySetting& setting = input.family[s];
    if (setting.seeds.empty()) continue;
    const auto add = [&](double place, const auto&... fields) {
      AddCsvRow(&csv, KeyAt(along, input.key, place), setting.label, setting.step.value_or(0),
                text::ShortestDecimal(place), fields...);
    };
    const ReducedCurve& curve = data.settings[s].panels[0];
    for (size_t i = 0; i < curve.x.size(); ++i) {
      add(curve.x[i], "", curve.mean[i], curve.low[i], curve.high[i],
          data.geometric ? "geometric" : "arithmetic");
    }
    for (const FamilySeed& seed : setting.seeds) {
      for (const auto& [place, value] : seed.values) add(place, seed.seed, value, "", "", "");
    }
  }
  return csv;
}

absl::Status NoValues(const Input& input, Along along) {
  const std::string key = text::CleanText(input.key);
  return absl::FailedPreconditionError(
      along == Along::kBlocks
          ? absl::StrCat("key: no converged run has points of ", KeyAt(along, key, 1),
                         " and later blocks. Record them with `evaluation.record`, or compute them "
                         "with `ablate analyze`")
          : absl::StrCat("key: no converged run has ", key,
                         " at any level. Compute it with `ablate analyze robustness`"));
}

std::string PlaceTitle(const Input& input, Along along, const FamilyData& data) {
  if (along == Along::kLevels) return absl::StrCat("Level of ", PerturbationOf(input.key));
  return data.embedding ? "Blocks passed (0: embedding)" : "Block (from 1)";
}

// Returns "from 0.001 to 0.12": the mean at the first and at the last place; "" without a mean.
std::string RangeText(const ReducedCurve& curve) {
  std::vector<double> means;
  std::copy_if(curve.mean.begin(), curve.mean.end(), std::back_inserter(means),
               [](double mean) { return std::isfinite(mean); });
  if (means.empty()) return "";
  return absl::StrCat("from ", report::Plain(means.front()), " to ", report::Plain(means.back()));
}

absl::StatusOr<Drawing> DrawFamily(const Input& input, Along along) {
  const FamilyData data = DataOf(input, along);
  if (!data.last.has_value()) return NoValues(input, along);
  Input drawn = input;
  drawn.settings = data.settings;
  CurvePanel panel;
  panel.scale = data.log ? ValueScale::kLogarithmic : ValueScale::kLinear;
  if (along == Along::kLevels) panel.places = PlaceScale::kLinear;
  ASSIGN_OR_RETURN(auto figure,
                   DrawPanels(drawn, {panel},
                              {PlaceTitle(input, along, data),
                               AxisTitle(report::NameOfFamily(input.key, input.comparison->source)),
                               FamilyFootnote(drawn, data)}));
  figure.title =
      absl::StrCat(input.title, ": ", FamilyText(along, input.key, input.comparison->source),
                   along == Along::kBlocks ? " over depth of " : " over levels of ",
                   report::Enumerated(NamesOfDrawn(input.family), kMostNamed));
  figure.description =
      absl::StrCat("Means of ", FamilyText(along, input.key, input.comparison->source),
                   along == Along::kBlocks ? " from the input to the output: "
                                           : " from the lowest to the highest level: ",
                   EachCurve(data.settings, kMostNamed, RangeText), ".");
  return Drawing{std::move(figure), FamilyCsv(input, along, data)};
}

std::string FamilyCaption(const Input& input, Along along) {
  const FamilyData data = DataOf(input, along);
  const bool blocks = along == Along::kBlocks;
  Input drawn = input;
  drawn.settings = data.settings;
  return absl::StrCat(
      SentenceName({FamilyText(along, input.key, input.comparison->source), "", ""}), " (",
      blocks ? absl::StrCat(KeyAt(along, input.key, 1), " and so on) over depth ")
             : absl::StrCat(input.key, ") over the perturbation's level "),
      StepText(data), blocks ? ", the input on the left" : "",
      IntervalMark(drawn) == "bar" ? ". Dot: " : ". Line: ",
      data.geometric ? "geometric" : "arithmetic", " mean over the seeds that converged. ",
      report::Capitalized(IntervalMark(drawn)), ": its 95 % t interval",
      data.geometric ? " (of the logarithms)" : "", ".", ChosenText(*input.comparison));
}

}  // namespace

// A metric by block at one step: mean and band of each setting, from the input to its last block.
constexpr Kind kDepth = {
    .name = "depth",
    .title = "Over depth",
    .key = "gradient",
    .wide = false,
    .folded = false,
    .reads = Reads::kBlocks,
    .forms = {},
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = [](const Input& input) { return DrawFamily(input, Along::kBlocks); },
    .caption = [](const Input& input) { return FamilyCaption(input, Along::kBlocks); },
};

// A number of the analysis robustness over the levels of a perturbation.
constexpr Kind kLevels = {
    .name = "levels",
    .title = "Over levels",
    .key = "robustness/replace_words@*/increase",
    .wide = false,
    .folded = false,
    .reads = Reads::kLevels,
    .forms = {},
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = [](const Input& input) { return DrawFamily(input, Along::kLevels); },
    .caption = [](const Input& input) { return FamilyCaption(input, Along::kLevels); },
};

}  // namespace ablate::figure
