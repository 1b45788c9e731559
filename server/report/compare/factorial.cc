#include "server/report/compare/factorial.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

using Labels = std::vector<std::string>;
// Values by seed of converged runs, or by sequence, on the comparison's scale.
using ValuesBySeed = std::map<uint32_t, double>;

// Finds the rows of a comparison by their labels.
class Rows {
 public:
  explicit Rows(const Comparison& comparison) {
    for (const ComparisonRow& row : comparison.rows) {
      ValuesBySeed& values = values_[row.labels];
      for (const SeedRun& run : row.runs) {
        if (comparison.unit != Unit::kSeed) {
          for (const double value : run.by_sequence) values[values.size()] = value;
        } else if (!run.diverged) {
          values[run.seed] = OnScale(comparison.scale, run.value);
        }
      }
    }
  }

  // Returns null if the grid has no such combination.
  const ValuesBySeed* Find(const Labels& labels) const {
    const auto found = values_.find(labels);
    return found == values_.end() ? nullptr : &found->second;
  }

  const std::map<Labels, ValuesBySeed>& all() const { return values_; }

 private:
  std::map<Labels, ValuesBySeed> values_;
};

// Cells whose values are added on each side of an effect.
struct Sides {
  std::vector<const ValuesBySeed*> setting, setting_less, baseline, baseline_less;

  std::vector<const ValuesBySeed*> All() const {
    std::vector<const ValuesBySeed*> all = setting;
    for (const auto* more : {&setting_less, &baseline, &baseline_less}) {
      all.insert(all.end(), more->begin(), more->end());
    }
    return all;
  }
};

// Returns the seeds that all of the cells have.
std::vector<uint32_t> SharedSeeds(const std::vector<const ValuesBySeed*>& cells) {
  std::vector<uint32_t> seeds;
  if (cells.empty()) return seeds;
  for (const auto& [seed, value] : *cells[0]) {
    const bool shared =
        std::all_of(cells.begin(), cells.end(),
                    [seed = seed](const ValuesBySeed* cell) { return cell->count(seed) > 0; });
    if (shared) seeds.push_back(seed);
  }
  return seeds;
}

double MeanAt(uint32_t seed, const std::vector<const ValuesBySeed*>& cells) {
  double sum = 0;
  for (const ValuesBySeed* cell : cells) sum += cell->at(seed);
  return cells.empty() ? 0 : sum / static_cast<double>(cells.size());
}

void MeasureEffect(const Sides& sides, Effect* effect) {
  std::vector<double> setting, baseline;
  for (const uint32_t seed : SharedSeeds(sides.All())) {
    setting.push_back(MeanAt(seed, sides.setting) - MeanAt(seed, sides.setting_less));
    baseline.push_back(MeanAt(seed, sides.baseline) - MeanAt(seed, sides.baseline_less));
  }
  effect->combinations = sides.setting.size();
  effect->difference = ComparePairs(setting, baseline, /*resamples=*/0);
}

// Computes the effects of one comparison.
class Finder {
 public:
  Finder(const Comparison& comparison, Labels baseline)
      : comparison_(comparison), rows_(comparison), baseline_(std::move(baseline)) {
    levels_.resize(baseline_.size());
    for (const ComparisonRow& row : comparison.rows) {
      for (size_t axis = 0; axis < row.labels.size(); ++axis) {
        Labels& known = levels_[axis];
        if (row.labels[axis] == baseline_[axis]) continue;
        if (std::find(known.begin(), known.end(), row.labels[axis]) == known.end()) {
          known.push_back(row.labels[axis]);
        }
      }
    }
  }

  std::vector<Effect> MainEffects() const {
    std::vector<Effect> effects;
    for (size_t axis = 0; axis < levels_.size(); ++axis) {
      for (const std::string& label : levels_[axis]) AddIfCrossed(Main(axis, label), &effects);
    }
    return Adjusted(std::move(effects));
  }

  std::vector<Effect> Interactions() const {
    std::vector<Effect> effects;
    if (CountInteractions() > kMaxInteractions) return effects;
    for (size_t first = 0; first < levels_.size(); ++first) {
      for (size_t second = first + 1; second < levels_.size(); ++second) {
        for (const std::string& a : levels_[first]) {
          for (const std::string& b : levels_[second]) {
            AddIfCrossed(Interaction(first, a, second, b), &effects);
          }
        }
      }
    }
    return Adjusted(std::move(effects));
  }

 private:
  size_t CountInteractions() const {
    size_t count = 0;
    for (size_t first = 0; first < levels_.size(); ++first) {
      for (size_t second = first + 1; second < levels_.size(); ++second) {
        count += levels_[first].size() * levels_[second].size();
      }
    }
    return count;
  }

  Level LevelOf(size_t axis, const std::string& label) const {
    return {comparison_.row_axes[axis], label, baseline_[axis]};
  }

  // Leaves out an effect if the grid has no combination of it.
  static void AddIfCrossed(std::optional<Effect> effect, std::vector<Effect>* effects) {
    if (effect.has_value()) effects->push_back(*std::move(effect));
  }

  std::optional<Effect> Main(size_t axis, const std::string& label) const {
    Sides sides;
    bool crossed = false;
    for (const auto& [labels, values] : rows_.all()) {
      if (labels[axis] != label) continue;
      Labels without = labels;
      without[axis] = baseline_[axis];
      const ValuesBySeed* const other = rows_.Find(without);
      crossed = crossed || other != nullptr;
      if (values.empty() || other == nullptr || other->empty()) continue;
      sides.setting.push_back(&values);
      sides.baseline.push_back(other);
    }
    if (!crossed) return std::nullopt;
    Effect effect{{LevelOf(axis, label)}};
    MeasureEffect(sides, &effect);
    return effect;
  }

  std::optional<Effect> Interaction(size_t first, const std::string& a, size_t second,
                                    const std::string& b) const {
    Sides sides;
    bool crossed = false;
    for (const auto& [labels, values] : rows_.all()) {
      if (labels[first] != a || labels[second] != b) continue;
      const auto at = [&, labels = labels](bool without_first, bool without_second) {
        Labels other = labels;
        if (without_first) other[first] = baseline_[first];
        if (without_second) other[second] = baseline_[second];
        return rows_.Find(other);
      };
      const ValuesBySeed* const cells[] = {at(true, false), at(false, true), at(true, true)};
      const bool exist = std::count(std::begin(cells), std::end(cells), nullptr) == 0;
      crossed = crossed || exist;
      const bool complete = exist && !values.empty() &&
                            std::none_of(std::begin(cells), std::end(cells),
                                         [](const ValuesBySeed* cell) { return cell->empty(); });
      if (!complete) continue;
      sides.setting.push_back(&values);
      sides.setting_less.push_back(cells[0]);
      sides.baseline.push_back(cells[1]);
      sides.baseline_less.push_back(cells[2]);
    }
    if (!crossed) return std::nullopt;
    Effect effect{{LevelOf(first, a), LevelOf(second, b)}};
    MeasureEffect(sides, &effect);
    return effect;
  }

  std::vector<Effect> Adjusted(std::vector<Effect> effects) const {
    if (!comparison_.tuned_axes.empty()) {
      for (Effect& effect : effects) {
        effect.difference.p_sign_flip = NoNumber(Undefined::kNotRecorded);
        effect.p_holm = NoNumber(Undefined::kNotRecorded);
      }
      return effects;
    }
    std::vector<Number> p;
    for (const Effect& effect : effects) p.push_back(effect.difference.p_sign_flip);
    const std::vector<Number> adjusted = HolmAdjust(p);
    for (size_t i = 0; i < effects.size(); ++i) effects[i].p_holm = adjusted[i];
    return effects;
  }

  const Comparison& comparison_;
  const Rows rows_;
  const Labels baseline_;
  std::vector<Labels> levels_;  // labels of each axis except its baseline, in the rows' order
};

// Returns the labels of the one baseline of all tested rows; nothing if there isn't exactly one.
std::optional<Labels> OneBaseline(const Comparison& comparison) {
  std::optional<Labels> labels;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.withheld != Withheld::kNo || !row.baseline.has_value()) return std::nullopt;
    if (!row.is_baseline) continue;
    if (labels.has_value()) return std::nullopt;
    labels = row.labels;
  }
  return labels;
}

}  // namespace

Factorial FindFactorial(const Comparison& comparison) {
  if (comparison.row_axes.size() < 2 || comparison.ended < comparison.planned) return {};
  std::optional<Labels> baseline = OneBaseline(comparison);
  if (!baseline.has_value()) return {};
  const Finder finder(comparison, *std::move(baseline));
  return {finder.MainEffects(), finder.Interactions()};
}

std::string EffectName(const Effect& effect) {
  std::vector<std::string> names;
  for (const Level& level : effect.levels) {
    names.push_back(SettingName({&level.axis, 1}, {&level.label, 1}));
  }
  return absl::StrJoin(names, " × ");
}

std::string EffectText(const Effect& effect) {
  if (effect.levels.size() > 1) return EffectName(effect);
  const Level& level = effect.levels[0];
  return absl::StrCat(EffectName(effect), " against ", level.baseline);
}

}  // namespace ablate::report
