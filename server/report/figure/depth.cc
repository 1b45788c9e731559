#include "server/report/figure/depth.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clean.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/analysed.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/small_multiples.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kAnyBlock = "block.*";
constexpr double kLogSpan = 100;  // a factor, as in ValueAxis

// The parts before and after the block in the keys of a family.
struct FamilyParts {
  std::string before, behind;
};

FamilyParts PartsOf(absl::string_view family) {
  const size_t at = family.find(kAnyBlock);
  if (at == absl::string_view::npos) return {absl::StrCat(family, "/"), ""};
  return {std::string(family.substr(0, at)), std::string(family.substr(at + kAnyBlock.size()))};
}

struct DepthData {
  bool log = false;  // logarithmic axis and geometric means
  std::vector<ReducedSetting> settings;
  bool embedding = false;               // some value is at position 0
  size_t nonfinite = 0;                 // values left out
  size_t zeros = 0;                     // values that a logarithmic axis can't show
  std::optional<uint32_t> first, last;  // of the settings' steps
};

// Returns true if no value is negative and the positive ones span a factor of 100: a gradient that
// vanished completely doesn't flatten the others.
bool IsLogarithmic(const std::vector<DepthSetting>& settings) {
  Extent all, positive;
  for (const DepthSetting& setting : settings) {
    for (const DepthSeed& seed : setting.seeds) {
      for (const auto& [position, value] : seed.values) {
        all.Add(value);
        if (value > 0) positive.Add(value);
      }
    }
  }
  return !positive.empty() && all.low() >= 0 && positive.high() / positive.low() >= kLogSpan;
}

ReducedCurve ReduceDepth(const DepthSetting& setting, bool log, DepthData* data) {
  ReducedCurve curve;
  curve.converged = setting.seeds.size();
  std::map<uint32_t, std::vector<double>> by_position;
  for (const DepthSeed& seed : setting.seeds) {
    ThinLine line;
    line.seed = seed.seed;
    for (const auto& [position, value] : seed.values) {
      std::vector<double>& finite = by_position[position];
      const bool zero = log && value == 0;
      data->nonfinite += std::isfinite(value) ? 0 : 1;
      data->zeros += zero ? 1 : 0;
      if (std::isfinite(value)) finite.push_back(value);
      line.x.push_back(position);
      line.y.push_back(std::isfinite(value) && !zero ? value : kNone);
    }
    if (setting.seeds.size() <= kMaxSeedLines) curve.seeds.push_back(std::move(line));
  }
  for (const auto& [position, values] : by_position) AddMean(position, values, log, &curve);
  if (by_position.empty()) return curve;
  curve.first_step = by_position.begin()->first;
  curve.last_step = by_position.rbegin()->first;
  data->embedding = data->embedding || curve.first_step == 0;
  return curve;
}

DepthData DataOf(const Input& input) {
  DepthData data;
  data.log = IsLogarithmic(input.depth);
  for (const DepthSetting& setting : input.depth) {
    data.settings.push_back(
        {setting.label, setting.style, {ReduceDepth(setting, data.log, &data)}});
    if (setting.seeds.empty()) continue;
    const uint32_t step = setting.step.value_or(0);
    data.first = std::min(data.first.value_or(step), step);
    data.last = std::max(data.last.value_or(step), step);
  }
  return data;
}

// Returns "at step 100", or if the settings have different steps "at steps 100 to 500".
std::string StepText(const DepthData& data) {
  const uint32_t first = data.first.value_or(0), last = data.last.value_or(0);
  if (first == last) return absl::StrCat("at step ", last);
  return absl::StrCat("at the last step that all seeds of a setting have, ", first, " to ", last);
}

std::string DepthFootnote(const Input& input, const DepthData& data) {
  std::vector<std::string> statements = {
      absl::StrCat(StepText(data), ", ", MeanText(input, data.log))};
  if (data.nonfinite > 0) {
    statements.push_back(
        absl::StrCat(report::Counted(data.nonfinite, "value"), " not finite, left out"));
  }
  if (data.zeros > 0) {
    statements.push_back(
        absl::StrCat(report::Counted(data.zeros, "value"), " of 0, drawn as a gap"));
  }
  return CurvesFootnote(input, std::move(statements), LeftOutOf(input.depth));
}

// Returns means without a seed, with their type, and seeds' values without an interval.
std::string DepthCsv(const Input& input, const DepthData& data) {
  std::string csv = "key,setting,step,position,seed,value,low,high,mean\n";
  for (size_t s = 0; s < input.depth.size(); ++s) {
    const DepthSetting& setting = input.depth[s];
    if (setting.seeds.empty()) continue;
    const std::string label = CsvText(setting.label), step = absl::StrCat(setting.step.value_or(0));
    const ReducedCurve& curve = data.settings[s].panels[0];
    for (size_t i = 0; i < curve.x.size(); ++i) {
      const auto position = static_cast<uint32_t>(curve.x[i]);
      AddCsvRow({CsvText(KeyAt(input.key, position)), label, step, absl::StrCat(position), "",
                 CsvNumber(curve.mean[i]), CsvNumber(curve.low[i]), CsvNumber(curve.high[i]),
                 data.log ? "geometric" : "arithmetic"},
                &csv);
    }
    for (const DepthSeed& seed : setting.seeds) {
      for (const auto& [position, value] : seed.values) {
        AddCsvRow({CsvText(KeyAt(input.key, position)), label, step, absl::StrCat(position),
                   absl::StrCat(seed.seed), CsvNumber(value), "", "", ""},
                  &csv);
      }
    }
  }
  return csv;
}

absl::StatusOr<Drawing> DrawDepth(const Input& input) {
  Input drawn = input;
  DepthData data = DataOf(input);
  if (!data.last.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "key: no converged run has points of ", text::CleanText(KeyAt(input.key, 1)),
        " and later blocks. Record them with `evaluation.record`, or compute them with "
        "`ablate analyze`"));
  }
  drawn.settings = data.settings;
  CurvePanel panel;
  panel.scale = data.log ? ValueScale::kLogarithmic : ValueScale::kLinear;
  const report::MetricName name = report::NameOfFamily(input.key);
  auto figure = DrawPanels(drawn, {panel},
                           {data.embedding ? "Blocks passed (0: embedding)" : "Block (from 1)",
                            AxisTitle(name), DepthFootnote(drawn, data)});
  if (!figure.ok()) return figure.status();
  Drawing drawing;
  drawing.figure = *std::move(figure);
  drawing.figure.title = absl::StrCat(input.title, ": ", name.text, " over depth of ",
                                      report::Enumerated(LabelsOf(input.depth), kMostNamed));
  drawing.csv = DepthCsv(input, data);
  return drawing;
}

std::string DepthCaption(const Input& input) {
  const DepthData data = DataOf(input);
  return absl::StrCat(SentenceName(report::NameOfFamily(input.key)), " (", KeyAt(input.key, 1),
                      " and so on) over depth ", StepText(data),
                      ", the input on the left. Line: ", data.log ? "geometric" : "arithmetic",
                      " mean over the seeds that converged. Band: its 95 % t interval",
                      data.log ? " (of the logarithms)" : "", ".", ChosenText(*input.comparison));
}

// Returns "pre from 0.001 to 0.12": each setting's mean at its first and its last position.
std::string DepthDescription(const Input& input) {
  std::vector<std::string> settings;
  for (const ReducedSetting& setting : DataOf(input).settings) {
    std::vector<double> means;
    for (const double mean : setting.panels[0].mean) {
      if (std::isfinite(mean)) means.push_back(mean);
    }
    settings.push_back(
        means.empty()
            ? absl::StrCat(setting.label, " without a mean")
            : absl::StrCat(setting.label, " from ",
                           report::Plain(means.front(), report::DecimalsFor(means.front())), " to ",
                           report::Plain(means.back(), report::DecimalsFor(means.back()))));
  }
  return absl::StrCat("Means of ", report::NameOfFamily(input.key).text,
                      " from the input to the output: ", report::Enumerated(settings, kMostNamed),
                      ".");
}

}  // namespace

std::string KeyAt(absl::string_view family, uint32_t position) {
  const FamilyParts parts = PartsOf(family);
  return position == 0 ? absl::StrCat(parts.before, "embedding")
                       : absl::StrCat(parts.before, "block.", position - 1, parts.behind);
}

std::optional<uint32_t> PositionOf(absl::string_view family, absl::string_view key) {
  if (key == KeyAt(family, 0)) return 0;
  const FamilyParts parts = PartsOf(family);
  uint32_t block = 0;
  absl::string_view rest = key;
  const bool read = absl::ConsumePrefix(&rest, parts.before) &&
                    absl::ConsumePrefix(&rest, "block.") &&
                    absl::ConsumeSuffix(&rest, parts.behind) && absl::SimpleAtoi(rest, &block) &&
                    block < UINT32_MAX;
  // Accept the canonical form only: "block.03" isn't a block.
  if (!read || key != KeyAt(family, block + 1)) return std::nullopt;
  return block + 1;
}

std::optional<std::string> FamilyOf(absl::string_view key) {
  constexpr absl::string_view kFirst = "/block.0";
  const size_t at = key.find(kFirst);
  if (at == absl::string_view::npos || at == 0) return std::nullopt;
  const absl::string_view before = key.substr(0, at), behind = key.substr(at + kFirst.size());
  if (behind.empty()) return std::string(before);
  // Otherwise it is a block such as block.03, or of several blocks.
  if (behind[0] != '.' || absl::StrContains(behind, "block.")) return std::nullopt;
  return absl::StrCat(before, "/", kAnyBlock, behind);
}

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
    .draw = DrawDepth,
    .caption = DepthCaption,
    .description = DepthDescription,
};

}  // namespace ablate::figure
