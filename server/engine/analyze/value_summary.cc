#include "server/engine/analyze/value_summary.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {
namespace {

struct QuantileLevel {
  const char* name;
  double level;
};
constexpr QuantileLevel kQuantileLevels[] = {{"quantile_05", 0.05},
                                             {"quantile_25", 0.25},
                                             {"quantile_50", 0.5},
                                             {"quantile_75", 0.75},
                                             {"quantile_95", 0.95}};

// Counts finite values in bins; returns [count].
at::Tensor CountInBins(const at::Tensor& values, const AsinhBins& bins, int64_t count) {
  const at::Tensor u = (values.to(at::kDouble).flatten() / bins.scale).asinh();
  const double per_unit = static_cast<double>(count) / (bins.high - bins.low);
  const at::Tensor bin = ((u - bins.low) * per_unit).floor().clamp(0, count - 1);
  return at::bincount(bin.to(at::kLong), {}, count);
}

AsinhBins BinsBetween(double least, double largest, double scale) {
  const double low = std::asinh(least / scale), high = std::asinh(largest / scale);
  return {scale, low, high > low ? high : low + 1};
}

// Returns quantiles at positions (n − 1)·level, interpolated between the values of two ranks (type
// 7).
template <typename ValueOfRank>
std::vector<double> InterpolatedQuantiles(int64_t n, const ValueOfRank& value) {
  std::vector<double> quantiles;
  for (const QuantileLevel& of : kQuantileLevels) {
    const double position = static_cast<double>(n - 1) * of.level;
    const auto rank = static_cast<int64_t>(position);
    const double low = value(rank), high = rank + 1 < n ? value(rank + 1) : low;
    quantiles.push_back(low + (position - static_cast<double>(rank)) * (high - low));
  }
  return quantiles;
}

std::vector<double> QuantilesOfValues(const at::Tensor& kept) {
  const at::Tensor exact = kept.to(at::kDouble);
  const double* const from = exact.const_data_ptr<double>();
  std::vector<double> values(from, from + exact.numel());
  // Ranks are requested in ascending order, some twice; earlier elements aren't moved.
  auto asked = values.begin();
  return InterpolatedQuantiles(exact.numel(), [&](int64_t rank) {
    const auto at = values.begin() + rank;
    if (at >= asked) std::nth_element(asked, at, values.end());
    asked = std::max(asked, at + 1);
    return *at;
  });
}

// Returns quantiles that assume values to be uniform within a bin.
std::vector<double> QuantilesOfBins(const at::Tensor& counts, const AsinhBins& bins) {
  const auto count = counts.accessor<int64_t, 1>();
  const double width = (bins.high - bins.low) / static_cast<double>(counts.numel());
  return InterpolatedQuantiles(counts.sum().item<int64_t>(), [&](int64_t rank) {
    int64_t bin = 0, before = 0;
    while (before + count[bin] <= rank) before += count[bin++];
    const double within =
        (static_cast<double>(rank - before) + 0.5) / static_cast<double>(count[bin]);
    return bins.scale * std::sinh(bins.low + width * (static_cast<double>(bin) + within));
  });
}

}  // namespace

// Moments of a place's values so far.
struct ValueSummaries::Moments {
  double n = 0, mean = 0, m2 = 0, m3 = 0, m4 = 0;  // as in moments_
  double least = 0, largest = 0;

  double Variance() const { return m2 / n; }
  bool AreFinite() const { return std::isfinite(least) && std::isfinite(largest); }
  double LargestAbsolute() const { return std::max(std::abs(least), std::abs(largest)); }
  // Returns true if values vary by more than the rounding of equal values.
  bool Vary() const { return Variance() > std::pow(4 * DBL_EPSILON * LargestAbsolute(), 2); }
};

ValueSummaries::ValueSummaries(std::vector<ValuePlace> places, bool histograms,
                               at::ScalarType precision, int64_t kept)
    : places_(std::move(places)), histograms_(histograms), kept_limit_(kept) {
  const auto count = static_cast<int64_t>(places_.size());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  moments_ = at::zeros({count, 5}, at::kDouble);
  extremes_ = at::tensor({kInfinity, -kInfinity}, at::kDouble).repeat({count, 1});
  bool all_kept = true;
  for (size_t place = 0; place < places_.size(); ++place) {
    squares_.push_back(at::zeros({places_[place].features}, at::kDouble));
    kept_.push_back(at::zeros({Keeps(place) ? places_[place].values : 0}, precision));
    all_kept = all_kept && Keeps(place);
  }
  passes_ = histograms_ || !all_kept ? 2 : 1;
  bins_ = at::zeros({all_kept ? 0 : count, kQuantileBins}, at::kLong);
  histogram_ = at::zeros({histograms_ ? count : 0, kHistogramBins}, at::kLong);
}

ValueSummaries::Moments ValueSummaries::MomentsOf(size_t place) const {
  const double* const of = moments_.const_data_ptr<double>() + 5 * place;
  const double* const extreme = extremes_.const_data_ptr<double>() + 2 * place;
  return {of[0], of[1], of[2], of[3], of[4], extreme[0], extreme[1]};
}

void ValueSummaries::Add(int64_t pass, size_t place, const at::Tensor& values) {
  if (pass == 0) return AddMoments(place, values);
  if (!MomentsOf(place).AreFinite()) return;
  const auto row = static_cast<int64_t>(place);
  if (!Keeps(place)) bins_[row] += OnHost(CountInBins(values, QuantileBins(place), kQuantileBins));
  if (histograms_) histogram_[row] += OnHost(CountInBins(values, HistogramBins(), kHistogramBins));
}

// Adds moments. Deviations are taken from the mean of a part, and parts are merged (Pébay 2008),
// because sums of powers of the values themselves would cancel if the mean is large.
void ValueSummaries::AddMoments(size_t place, const at::Tensor& values) {
  const auto row = static_cast<int64_t>(place);
  const at::Tensor exact = values.to(at::kDouble);
  const double mean = exact.mean().item<double>();
  const at::Tensor deviation = exact - mean, squared = deviation.square();
  const auto [least_value, largest_value] = at::aminmax(exact);
  const at::Tensor least = OnHost(least_value), largest = OnHost(largest_value);
  const Moments a = MomentsOf(place);
  const Moments b = {static_cast<double>(exact.numel()),
                     mean,
                     squared.sum().item<double>(),
                     (squared * deviation).sum().item<double>(),
                     squared.square().sum().item<double>(),
                     least.item<double>(),
                     largest.item<double>()};
  const double n = a.n + b.n, d = a.n == 0 ? 0 : b.mean - a.mean, product = a.n * b.n / n;
  const double m3 =
      a.m3 + b.m3 + d * d * d * product * (a.n - b.n) / n + 3 * d * (a.n * b.m2 - b.n * a.m2) / n;
  const double m4 = a.m4 + b.m4 +
                    d * d * d * d * product * (a.n * a.n - a.n * b.n + b.n * b.n) / (n * n) +
                    6 * d * d * (a.n * a.n * b.m2 + b.n * b.n * a.m2) / (n * n) +
                    4 * d * (a.n * b.m3 - b.n * a.m3) / n;
  const at::Tensor merged = at::tensor(
      {n, a.n == 0 ? b.mean : a.mean + d * b.n / n, a.m2 + b.m2 + d * d * product, m3, m4},
      at::kDouble);
  const at::Tensor extremes = at::stack(  // NaN if any value is
      {at::minimum(extremes_[row][0], least), at::maximum(extremes_[row][1], largest)});
  if (places_[place].features > 0) squares_[place] += OnHost(exact.square().sum(0));
  if (Keeps(place)) {
    kept_[place].narrow(0, static_cast<int64_t>(a.n), exact.numel()).copy_(values.flatten());
  }
  moments_[row].copy_(merged);
  extremes_[row].copy_(extremes);
}

AsinhBins ValueSummaries::QuantileBins(size_t place) const {
  const Moments of = MomentsOf(place);
  return BinsBetween(of.least, of.largest, of.Vary() ? std::sqrt(of.Variance()) : 1);
}

// Returns common bins for all places, fine enough for the one that varies least.
AsinhBins ValueSummaries::HistogramBins() const {
  double least = 0, largest = 0, scale = std::numeric_limits<double>::infinity();
  bool any = false;
  for (size_t place = 0; place < places_.size(); ++place) {
    const Moments of = MomentsOf(place);
    if (!of.AreFinite()) continue;
    least = any ? std::min(least, of.least) : of.least;
    largest = any ? std::max(largest, of.largest) : of.largest;
    if (of.Vary()) scale = std::min(scale, std::sqrt(of.Variance()));
    any = true;
  }
  // Not so fine that the largest values can't be resolved.
  constexpr double kLeastScale = 1e-6;
  scale = std::max(scale, kLeastScale * std::max(std::abs(least), std::abs(largest)));
  return BinsBetween(least, largest, std::isfinite(scale) && scale > 0 ? scale : 1);
}

std::vector<StateTensor> ValueSummaries::State() {
  std::vector<StateTensor> state = {
      {"moments", moments_}, {"extremes", extremes_}, {"bins", bins_}, {"histogram", histogram_}};
  for (size_t place = 0; place < places_.size(); ++place) {
    state.push_back({absl::StrCat("squares.", place), squares_[place]});
    state.push_back({absl::StrCat("kept.", place), kept_[place]});
  }
  return state;
}

std::vector<double> ValueSummaries::Quantiles(size_t place) const {
  const Moments of = MomentsOf(place);
  if (!of.AreFinite()) {
    return std::vector<double>(std::size(kQuantileLevels),
                               std::numeric_limits<double>::quiet_NaN());
  }
  if (Keeps(place)) return QuantilesOfValues(kept_[place]);
  std::vector<double> quantiles =
      QuantilesOfBins(bins_[static_cast<int64_t>(place)], QuantileBins(place));
  for (double& quantile : quantiles) quantile = std::clamp(quantile, of.least, of.largest);
  return quantiles;
}

void ValueSummaries::AddShape(size_t place, AnalysisResult* result) const {
  const Moments of = MomentsOf(place);
  const double variance = of.Variance();
  const auto add = [&](const char* name, double value, std::optional<Undefined> undefined = {}) {
    result->numbers.push_back(
        NumberOf(absl::StrCat(name, "/", places_[place].name), value, undefined));
  };
  std::optional<Undefined> no_shape;  // set if all values are equal
  if (of.AreFinite() && !of.Vary()) no_shape = Undefined::kZeroVariance;
  add("mean", of.mean);
  add("variance", variance);
  add("skewness", of.m3 / of.n / std::pow(variance, 1.5), no_shape);
  add("kurtosis", of.m4 / of.n / (variance * variance), no_shape);
  add("l2_norm", std::sqrt(of.m2 + of.n * of.mean * of.mean));
  add("minimum", of.least);
  const std::vector<double> quantiles = Quantiles(place);
  for (size_t i = 0; i < quantiles.size(); ++i) add(kQuantileLevels[i].name, quantiles[i]);
  add("maximum", of.largest);
}

void ValueSummaries::AddLargestFeature(size_t place, AnalysisResult* result) const {
  if (places_[place].features == 0) return;
  const at::Tensor& squares = squares_[place];
  const double all = squares.sum().item<double>();
  std::optional<Undefined> undefined;
  if (all == 0) undefined = Undefined::kZeroDenominator;
  if (!std::isfinite(all)) undefined = Undefined::kNonFinite;
  const auto add = [&](const char* name, double value) {
    result->numbers.push_back(
        NumberOf(absl::StrCat(name, "/", places_[place].name), value, undefined));
  };
  add("largest_feature", static_cast<double>(squares.argmax().item<int64_t>()));
  add("largest_feature_share", squares.max().item<double>() / all);
}

AnalysisResult ValueSummaries::Result() const {
  AnalysisResult result;
  for (size_t place = 0; place < places_.size(); ++place) {
    AddShape(place, &result);
    AddLargestFeature(place, &result);
  }
  if (!histograms_) return result;
  const AsinhBins bins = HistogramBins();
  const at::Tensor u = at::linspace(bins.low, bins.high, kHistogramBins + 1, at::kDouble);
  result.arrays.push_back(ArrayOf("histogram", {"place", "bin"}, histogram_));
  result.arrays.push_back(ArrayOf("histogram_edges", {"edge"}, bins.scale * u.sinh()));
  return result;
}

}  // namespace ablate::engine
