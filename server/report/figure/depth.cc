#include "server/report/figure/depth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/report/compare/statistics.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/curve_panels.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/small_multiples.h"
#include "text/clean.h"

namespace ablate::figure {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = 1e-150, kMost = 1e150;
constexpr double kLogSpan = 100;  // a factor, as ValueAxis has it

struct DepthData {
  bool log = false;  // logarithmic axis and geometric means
  std::vector<ReducedSetting> settings;
  bool embedding = false;               // some value is of position 0
  size_t nonfinite = 0;                 // values that are left out
  size_t zeros = 0;                     // values that a logarithmic axis can't show
  std::optional<uint32_t> first, last;  // of the settings' steps
  std::vector<std::string> without;     // settings that have no values
};

// Whether no value is negative and the positive ones span a factor of 100: a gradient that vanished
// altogether does not flatten the others.
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

// Adds the mean of the finite values at one position and its interval; geometric ones by `log`, of
// which there are none where a value is 0.
void AddPosition(uint32_t position, const std::vector<double>& values, bool log,
                 ReducedCurve* curve) {
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back(log ? std::log(value) : value);
  const report::Summary summary = report::Summarize(scaled);
  double mean = summary.mean.value, low = summary.interval.low, high = summary.interval.high;
  // Equal values have no spread, but their mean is certain.
  if (summary.interval.undefined == report::Undefined::kZeroVariance) low = high = mean;
  if (log) {
    mean = std::exp(mean);
    low = std::exp(low);
    high = std::exp(high);
  }
  // An interval so wide that an axis has no place for it.
  if (log && !(low > kLeast && high < kMost)) low = high = kNone;
  curve->x.push_back(position);
  curve->mean.push_back(mean);
  curve->low.push_back(low);
  curve->high.push_back(high);
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
  for (const auto& [position, values] : by_position) AddPosition(position, values, log, &curve);
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
    if (setting.seeds.empty()) {
      if (setting.converged > 0) data.without.push_back(setting.label);
      continue;
    }
    const uint32_t step = setting.step.value_or(0);
    data.first = std::min(data.first.value_or(step), step);
    data.last = std::max(data.last.value_or(step), step);
  }
  return data;
}

// "at step 100", or where the settings have steps of their own "at steps 100 to 500".
std::string StepText(const DepthData& data) {
  const uint32_t first = data.first.value_or(0), last = data.last.value_or(0);
  if (first == last) return absl::StrCat("at step ", last);
  return absl::StrCat("at the last step that all seeds of a setting have, ", first, " to ", last);
}

// "none 2 of 12"; of no setting: "".
std::string DivergedText(const Input& input) {
  std::vector<std::string> settings;
  for (const DepthSetting& setting : input.depth) {
    if (setting.diverged == 0) continue;
    settings.push_back(absl::StrCat(ElideMiddle(setting.label, 0.8, kSmallSize), " ",
                                    setting.diverged, " of ",
                                    setting.diverged + setting.converged));
  }
  return settings.empty() ? "" : report::Enumerated(settings, 6);
}

std::string FootnoteOf(const Input& input, const DepthData& data) {
  std::vector<std::string> parts = {StepText(data)};
  const bool interval = AnyInterval(input);
  parts.push_back(absl::StrCat(data.log && interval ? "geometric " : "", SeedsText(input)));
  if (interval) parts.push_back("band: its 95 % interval");
  std::vector<std::string> sentences = {absl::StrJoin(parts, ", ")};
  if (data.nonfinite > 0) {
    sentences.push_back(
        absl::StrCat(report::Counted(data.nonfinite, "value"), " not finite, left out"));
  }
  if (data.zeros > 0) {
    sentences.push_back(
        absl::StrCat(report::Counted(data.zeros, "value"), " of 0, where a line is interrupted"));
  }
  if (!data.without.empty()) {
    std::vector<std::string> labels;
    for (const std::string& label : data.without) {
      labels.push_back(ElideMiddle(label, 0.8, kSmallSize));
    }
    sentences.push_back(absl::StrCat("without values: ", report::Enumerated(labels, 6)));
  }
  if (const std::string diverged = DivergedText(input); !diverged.empty()) {
    sentences.push_back(absl::StrCat("diverged, not in the mean: ", diverged));
  }
  const bool many = input.settings.size() > kMaxInOnePanel;
  return absl::StrCat(many ? MultiplesText(*input.comparison) : "", absl::StrJoin(sentences, "; "));
}

// Means without a seed and with which mean it is, seeds' values without an interval.
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
        "key: no run that converged has points of ", text::CleanText(KeyAt(input.key, 1)),
        " and the blocks behind it; `evaluation.record` asks for metrics by block"));
  }
  drawn.settings = data.settings;
  CurvePanel panel;
  panel.scale = data.log ? ValueScale::kLogarithmic : ValueScale::kLinear;
  const MetricName name = NameOfFamily(input.key);
  auto figure = DrawPanels(drawn, {panel},
                           {data.embedding ? "Blocks passed (0: embedding)" : "Block (from 1)",
                            AxisTitle(name), FootnoteOf(drawn, data)});
  if (!figure.ok()) return figure.status();
  Drawing drawing;
  drawing.figure = *std::move(figure);
  std::vector<std::string> labels;
  for (const DepthSetting& setting : input.depth) labels.push_back(setting.label);
  drawing.figure.title =
      absl::StrCat(input.title, ": ", name.text, " over depth of ", report::Enumerated(labels, 12));
  drawing.csv = DepthCsv(input, data);
  return drawing;
}

std::string DepthCaption(const Input& input) {
  const DepthData data = DataOf(input);
  return absl::StrCat(
      NameOfFamily(input.key).text, " (", input.key, "/block.0 and so on) over depth ",
      StepText(data), ", the input at the left. The line is the ",
      data.log ? "geometric" : "arithmetic",
      " mean over the seeds that converged, the band its 95 % interval",
      data.log ? " (a t interval of the logarithms)" : "", ".", ChosenText(*input.comparison));
}

// "pre from 0.001 to 0.12": each setting's mean at its first and its last position.
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
  return absl::StrCat("Means of ", NameOfFamily(input.key).text,
                      " from the input to the output: ", report::Enumerated(settings, 12), ".");
}

}  // namespace

std::string KeyAt(absl::string_view family, uint32_t position) {
  return position == 0 ? absl::StrCat(family, "/embedding")
                       : absl::StrCat(family, "/block.", position - 1);
}

std::optional<uint32_t> PositionOf(absl::string_view family, absl::string_view key) {
  if (key == KeyAt(family, 0)) return 0;
  uint32_t block = 0;
  absl::string_view rest = key;
  const bool read = absl::ConsumePrefix(&rest, family) && absl::ConsumePrefix(&rest, "/block.") &&
                    absl::SimpleAtoi(rest, &block) && block < UINT32_MAX;
  // Only as it is written: "block.03" is no block.
  if (!read || key != KeyAt(family, block + 1)) return std::nullopt;
  return block + 1;
}

// A metric by block at one step: mean and band of each setting, from the input to its last block.
constexpr Kind kDepth = {
    .name = "depth",
    .title = "Over depth",
    .help =
        "a metric by block at one step, over depth: mean over seeds, its interval as a band, the "
        "seeds as thin lines",
    .key = "gradient",
    .wide = false,
    .row_windows = false,
    .by_block = true,
    .wanted = [](const report::Comparison&) { return true; },
    .reduce = nullptr,
    .draw = DrawDepth,
    .caption = DepthCaption,
    .description = DepthDescription,
};

}  // namespace ablate::figure
