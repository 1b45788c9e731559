#include "server/imports/values.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/imports/keys.h"
#include "server/lookup/errors.h"

namespace ablate::imports {
namespace {

class ValueReader {
 public:
  ValueReader(const std::vector<Run>& runs, Reading* reading) : runs_(runs), reading_(*reading) {}

  absl::Status ReadLast() {
    reading_.primary = reading_.metric;
    std::optional<uint32_t> first, last;  // least and largest last step
    for (Cell& cell : reading_.cells) {
      const Series& series = SeriesOf(cell);
      if (reading_.by_item) continue;
      Set(series, series.values.size() - 1, &cell);
      if (cell.diverged) continue;
      first = std::min(first.value_or(cell.step), cell.step);
      last = std::max(last.value_or(cell.step), cell.step);
    }
    if (first == last) return absl::OkStatus();
    return lookup::InvalidField(
        "at", absl::StrCat("the runs end at different steps, from ", *first, " to ", *last),
        CommonStep());
  }

  absl::Status ReadAt(uint32_t step) {
    RETURN_IF_ERROR(CheckBySteps());
    reading_.primary = absl::StrCat(reading_.metric, "@", step);
    for (Cell& cell : reading_.cells) {
      const Series& series = SeriesOf(cell);
      const auto found = std::lower_bound(series.steps.begin(), series.steps.end(), step);
      const bool has = found != series.steps.end() && *found == step;
      // A run that diverged before may have no such step.
      const bool ended = found == series.steps.end() && !std::isfinite(series.values.back());
      if (has || ended) {
        Set(series,
            has ? static_cast<size_t>(found - series.steps.begin()) : series.steps.size() - 1,
            &cell);
        continue;
      }
      return lookup::InvalidField("at",
                                  absl::StrCat("run ", reflect::ShortText(runs_[cell.run].name),
                                               " has no ", reading_.metric, " at step ", step),
                                  CommonStep());
    }
    return absl::OkStatus();
  }

  absl::Status ReadBest() {
    RETURN_IF_ERROR(CheckBySteps());
    if (!reading_.better.has_value()) return NoDirection(reading_.metric);
    reading_.primary = absl::StrCat(reading_.metric, "@best");
    const double sign = *reading_.better == v1::Better::lower ? 1 : -1;
    for (Cell& cell : reading_.cells) {
      const Series& series = SeriesOf(cell);
      size_t best = series.values.size() - 1;
      for (size_t i = 0; i < series.values.size(); ++i) {
        const bool finite = std::isfinite(series.values[i]);
        const bool lower = sign * series.values[i] < sign * series.values[best];
        if (finite && (lower || !std::isfinite(series.values[best]))) best = i;
      }
      Set(series, best, &cell);
    }
    return absl::OkStatus();
  }

 private:
  const Series& SeriesOf(const Cell& cell) const {
    return runs_[cell.run].series.at(reading_.metric);
  }

  // Returns what `at` may be if the runs end at different steps.
  std::string CommonStep() const {
    std::vector<uint32_t> common;
    bool begun = false;
    for (const Cell& cell : reading_.cells) {
      if (cell.diverged) continue;
      const std::vector<uint32_t>& steps = SeriesOf(cell).steps;
      std::vector<uint32_t> both;
      std::set_intersection(common.begin(), common.end(), steps.begin(), steps.end(),
                            std::back_inserter(both));
      common = begun ? std::move(both) : steps;
      begun = true;
    }
    return common.empty() ? "best, because they have no step in common"
                          : absl::StrCat("a step that all have, the last of which is ",
                                         common.back(), "; or best");
  }

  absl::Status CheckBySteps() const {
    if (!reading_.by_item) return absl::OkStatus();
    return lookup::InvalidField("at", "the results are by item, and have no steps", "last");
  }

  static void Set(const Series& series, size_t place, Cell* cell) {
    cell->value = series.values[place];
    cell->step = series.steps[place];
    cell->diverged = !std::isfinite(cell->value);
  }

  const std::vector<Run>& runs_;
  Reading& reading_;
};

}  // namespace

std::optional<v1::Better::Value> DirectionOf(const std::string& metric) {
  const std::string part = absl::AsciiStrToLower(LastPart(metric));
  const std::string word = part.substr(part.find_last_of("_- ") + 1);
  for (const char* lower : {"loss", "nll", "perplexity", "ppl", "bpb", "error", "rmse", "mse"}) {
    if (word == lower) return v1::Better::lower;
  }
  for (const char* higher : {"accuracy", "acc", "f1", "auc", "auroc"}) {
    if (word == higher) return v1::Better::higher;
  }
  return std::nullopt;
}

absl::Status NoDirection(const std::string& metric) {
  return lookup::InvalidField("better",
                              absl::StrCat("nothing says which values of ", metric, " are better"),
                              "lower or higher");
}

absl::Status ReadValues(const v1::ImportOptions& options, const std::vector<Run>& runs,
                        Reading* reading) {
  ValueReader reader(runs, reading);
  if (options.has_at()) return reader.ReadAt(options.at());
  return options.best() ? reader.ReadBest() : reader.ReadLast();
}

}  // namespace ablate::imports
