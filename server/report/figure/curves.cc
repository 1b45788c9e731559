#include "server/report/figure/curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/report/compare/statistics.h"
#include "server/report/compare/windows.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {
namespace {

// Mean and squared deviations of the seeds' values at one step, by Welford's updates.
struct StepMoments {
  uint32_t step = 0;
  size_t n = 0;
  double mean = 0, squares = 0;

  void Add(double value) {
    ++n;
    const double from_old = value - mean;
    mean += from_old / static_cast<double>(n);
    squares += from_old * (value - mean);
  }
};

// Walks along both ascending lists; removes steps that the curve lacks. With `log` the moments are
// those of the logarithms.
void AddCurve(const SeedCurve& curve, bool log, std::vector<StepMoments>* steps) {
  size_t kept = 0, at = 0;
  for (StepMoments& moments : *steps) {
    while (at < curve.steps.size() && curve.steps[at] < moments.step) ++at;
    if (at == curve.steps.size() || curve.steps[at] != moments.step) continue;
    const double value = log ? std::log(curve.values[at]) : curve.values[at];
    moments.Add(std::isfinite(value) ? value : kNone);
    (*steps)[kept++] = moments;
  }
  steps->resize(kept);
}

std::vector<StepMoments> MomentsOf(const std::vector<SeedCurve>& seeds, bool log) {
  std::vector<StepMoments> steps;
  bool first = true;
  for (const SeedCurve& curve : seeds) {
    if (curve.diverged || curve.steps.empty()) continue;
    if (first) {
      for (const uint32_t step : curve.steps) steps.push_back({step});
    }
    first = false;
    AddCurve(curve, log, &steps);
  }
  return steps;
}

// A mean and its interval; with logarithms theirs.
struct Ends {
  double mean, low, high;
};

// Adds a mean and its interval, in the values' unit; no interval that is too wide for any axis.
void AddEnds(Ends ends, bool log, ReducedCurve* reduced) {
  constexpr double kLeast = 1e-150, kMost = 1e150;
  if (log) {
    ends = {std::exp(ends.mean), std::exp(ends.low), std::exp(ends.high)};
    if (!(ends.low > kLeast && ends.high < kMost)) ends.low = ends.high = kNone;
  }
  reduced->mean.push_back(ends.mean);
  reduced->low.push_back(ends.low);
  reduced->high.push_back(ends.high);
}

void FillMean(const std::vector<StepMoments>& steps, size_t n, bool log, ReducedCurve* reduced) {
  std::vector<double> means;
  for (const StepMoments& moments : steps) means.push_back(moments.mean);
  const auto count = static_cast<double>(n);
  const double quantile =
      n < 2 ? kNone : report::StudentQuantile((1 + report::kConfidence) / 2, count - 1);
  for (const size_t i : ThinIndices(means, kMaxPoints)) {
    const double deviation = n < 2 ? kNone : std::sqrt(steps[i].squares / (count - 1));
    const double half = quantile * deviation / std::sqrt(count);
    reduced->x.push_back(steps[i].step);
    AddEnds({means[i], means[i] - half, means[i] + half}, log, reduced);
  }
}

ThinLine Thin(const SeedCurve& curve) {
  ThinLine line{curve.seed, curve.diverged, curve.cut, {}, {}};
  for (const size_t i : ThinIndices(curve.values, kMaxSeedPoints)) {
    line.x.push_back(curve.steps[i]);
    line.y.push_back(std::isfinite(curve.values[i]) ? curve.values[i] : kNone);
  }
  return line;
}

// Returns the average number of steps between points.
double SpacingOf(const SeedCurve& curve) {
  if (curve.steps.size() < 2) return 1;
  return static_cast<double>(curve.steps.back() - curve.steps.front()) /
         static_cast<double>(curve.steps.size() - 1);
}

SeedCurve WithCurve(const SeedCurve& of, report::Curve curve) {
  return {of.seed, std::move(curve.steps), std::move(curve.values), of.diverged, of.cut};
}

}  // namespace

SettingCurves PairedCurves(report::Scale scale, const SettingCurves& row,
                           const SettingCurves& baseline) {
  SettingCurves paired{row.label, row.style, {}};
  for (const SeedCurve& curve : row.seeds) {
    const auto partner =
        std::find_if(baseline.seeds.begin(), baseline.seeds.end(),
                     [&curve](const SeedCurve& other) { return other.seed == curve.seed; });
    if (partner == baseline.seeds.end() || curve.diverged || partner->diverged) continue;
    SeedCurve& difference = paired.seeds.emplace_back();
    difference.seed = curve.seed;
    size_t at = 0;
    for (size_t i = 0; i < curve.steps.size(); ++i) {
      while (at < partner->steps.size() && partner->steps[at] < curve.steps[i]) ++at;
      if (at == partner->steps.size()) break;
      if (partner->steps[at] != curve.steps[i]) continue;
      difference.steps.push_back(curve.steps[i]);
      difference.values.push_back(report::OnScale(scale, curve.values[i]) -
                                  report::OnScale(scale, partner->values[at]));
    }
  }
  return paired;
}

std::vector<size_t> ThinIndices(const std::vector<double>& values, size_t max_points) {
  std::vector<size_t> kept;
  const size_t buckets = values.size() <= max_points ? values.size() : max_points / 4;
  for (size_t b = 0; b < buckets; ++b) {
    const size_t first = b * values.size() / buckets, end = (b + 1) * values.size() / buckets;
    std::vector<size_t> picks = {first, end - 1};
    size_t low = first, high = first, broken = end, finite = first;
    for (size_t i = first; i < end; ++i) {
      if (!std::isfinite(values[i])) {
        broken = i;
        continue;
      }
      finite = i;
      if (!(values[i] >= values[low])) low = i;
      if (!(values[i] <= values[high])) high = i;
    }
    picks.insert(picks.end(), {low, high, finite});
    if (broken < end) picks.push_back(broken);
    std::sort(picks.begin(), picks.end());
    picks.erase(std::unique(picks.begin(), picks.end()), picks.end());
    kept.insert(kept.end(), picks.begin(), picks.end());
  }
  return kept;
}

size_t SmoothingPoints(const SeedCurve& curve, uint32_t smooth) {
  const size_t points = curve.steps.size();
  if (points < 10) return 1;
  const auto wanted = static_cast<size_t>(smooth / std::max(SpacingOf(curve), 1.0));
  return std::clamp<size_t>(wanted, 1, std::min(points / 5, report::kMaxSmoothing));
}

SeedCurve Smoothed(const SeedCurve& curve, size_t points) {
  if (points <= 1) return curve;
  absl::StatusOr<report::Curve> mean = report::TrailingMean(curve.steps, curve.values, points);
  // A run that diverged before: its points as they are.
  if (!mean.ok() || mean->steps.empty()) return curve;
  return WithCurve(curve, *std::move(mean));
}

SeedCurve Accumulated(const SeedCurve& curve) {
  return WithCurve(curve, report::CumulativeMean(curve.steps, curve.values));
}

SeedCurve Between(const SeedCurve& curve, uint32_t first_step, uint32_t last_step) {
  SeedCurve part{curve.seed, {}, {}, curve.diverged, curve.cut};
  for (size_t i = 0; i < curve.steps.size(); ++i) {
    part.cut = part.cut || curve.steps[i] > last_step;
    if (curve.steps[i] < first_step || curve.steps[i] > last_step) continue;
    part.steps.push_back(curve.steps[i]);
    part.values.push_back(curve.values[i]);
  }
  return part;
}

ReducedCurve ReduceSeeds(const std::vector<SeedCurve>& seeds, bool seed_lines, bool log) {
  ReducedCurve reduced;
  bool first = true;
  for (const SeedCurve& curve : seeds) {
    if (curve.steps.empty()) continue;
    ++(curve.diverged ? reduced.diverged : reduced.converged);
    reduced.first_step =
        first ? curve.steps.front() : std::min(reduced.first_step, curve.steps.front());
    reduced.last_step = std::max(reduced.last_step, curve.steps.back());
    first = false;
  }
  // The mean of a single seed is its value, which its logarithm need not give back.
  log = log && reduced.converged > 1;
  FillMean(MomentsOf(seeds, log), reduced.converged, log, &reduced);
  const bool converged_too = seed_lines && reduced.converged <= kMaxSeedLines;
  for (const SeedCurve& curve : seeds) {
    const bool kept = curve.diverged ? reduced.seeds.size() < kMaxSeedLines : converged_too;
    if (kept && !curve.steps.empty()) reduced.seeds.push_back(Thin(curve));
  }
  return reduced;
}

void AddMean(double x, const std::vector<double>& values, bool log, ReducedCurve* curve) {
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back(log ? std::log(value) : value);
  const report::Summary summary = report::Summarize(scaled);
  const double mean = summary.mean.value;
  double low = summary.interval.low, high = summary.interval.high;
  // Equal values have no variance, but their mean is certain.
  if (summary.interval.undefined == report::Undefined::kZeroVariance) low = high = mean;
  curve->x.push_back(x);
  AddEnds({mean, low, high}, log, curve);
  const bool equal = std::all_of(values.begin(), values.end(),
                                 [&](double value) { return value == values.front(); });
  if (!equal || !summary.mean.defined()) return;
  // Their logarithm need not give them back.
  curve->mean.back() = values.front();
  if (values.size() > 1) curve->low.back() = curve->high.back() = values.front();
}

ReducedCurve Thinned(const ReducedCurve& reduced, size_t max_points) {
  const auto pick = [](const std::vector<double>& from, const std::vector<size_t>& indices) {
    std::vector<double> picked;
    for (const size_t i : indices) picked.push_back(from[i]);
    return picked;
  };
  ReducedCurve thin = reduced;
  const std::vector<size_t> kept = ThinIndices(reduced.mean, max_points);
  thin.x = pick(reduced.x, kept);
  thin.mean = pick(reduced.mean, kept);
  thin.low = pick(reduced.low, kept);
  thin.high = pick(reduced.high, kept);
  for (ThinLine& line : thin.seeds) {
    const std::vector<size_t> points = ThinIndices(line.y, max_points);
    line.x = pick(line.x, points);
    line.y = pick(line.y, points);
  }
  return thin;
}

ReducedCurve ReduceSmoothed(const std::vector<SeedCurve>& seeds, uint32_t smooth,
                            uint32_t first_step, uint32_t last_step, bool seed_lines, bool log) {
  // One width for all; otherwise their mean would mix different averages.
  const SeedCurve* longest = nullptr;
  for (const SeedCurve& curve : seeds) {
    if (curve.steps.size() > (longest == nullptr ? 0 : longest->steps.size())) longest = &curve;
  }
  const size_t points = longest == nullptr ? 1 : SmoothingPoints(*longest, smooth);
  std::vector<SeedCurve> parts;
  for (const SeedCurve& curve : seeds) {
    parts.push_back(Between(Smoothed(curve, points), first_step, last_step));
  }
  ReducedCurve reduced = ReduceSeeds(parts, seed_lines, log);
  if (longest == nullptr) return reduced;
  if (points > 1) {
    reduced.smoothed =
        static_cast<uint32_t>(std::lround(SpacingOf(*longest) * static_cast<double>(points)));
  }
  // The axis begins with the curves, though an average begins later.
  reduced.first_step = std::min(reduced.first_step, std::max(longest->steps.front(), first_step));
  return reduced;
}

}  // namespace ablate::figure
