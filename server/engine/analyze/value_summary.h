// Computes scale and shape of the values at several places, such as a model's sites or parameters:
// moments, extremes, quantiles and histograms, from values that arrive in parts.
// docs/reference/analyses/activations.md has the formulas.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_VALUE_SUMMARY_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_VALUE_SUMMARY_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/analyze/computation.h"

namespace ablate::engine {

struct ValuePlace {
  std::string name;
  int64_t values = 0;    // total number of values, at least 1
  int64_t features = 0;  // values per row; 0 if the values aren't in rows
};

// Bins of equal width in asinh(x/scale), from `low` to `high`.
struct AsinhBins {
  double scale = 1;
  double low = 0;
  double high = 1;
};

// Accumulates summaries. Each pass adds every value once, and adds a place's values in the same
// order.
class ValueSummaries {
 public:
  // `precision` is the type of the values. Quantiles are exact at places of at most `kept` values.
  ValueSummaries(std::vector<ValuePlace> places, bool histograms, at::ScalarType precision,
                 int64_t kept = kExactQuantiles);

  // Number of passes over all values: 2 for histograms or for quantiles from bins, else 1.
  int64_t passes() const { return passes_; }
  // Adds values of one place: [n, features], or [n] without features; n is at least 1.
  void Add(int64_t pass, size_t place, const at::Tensor& values);
  std::vector<StateTensor> State();
  // Returns the result. Call it after all passes.
  AnalysisResult Result() const;

 private:
  struct Moments;

  bool Keeps(size_t place) const { return places_[place].values <= kept_limit_; }
  Moments MomentsOf(size_t place) const;
  void AddMoments(size_t place, const at::Tensor& values);
  AsinhBins QuantileBins(size_t place) const;
  AsinhBins HistogramBins() const;
  std::vector<double> Quantiles(size_t place) const;
  void AddShape(size_t place, AnalysisResult* result) const;
  void AddLargestFeature(size_t place, AnalysisResult* result) const;

  const std::vector<ValuePlace> places_;
  const bool histograms_;
  const int64_t kept_limit_;
  int64_t passes_ = 1;
  at::Tensor moments_;               // [places, 5]: n, mean, Σ of the deviations' powers 2, 3, 4
  at::Tensor extremes_;              // [places, 2]: least and largest
  std::vector<at::Tensor> squares_;  // per place, Σx² by feature; empty without features
  std::vector<at::Tensor> kept_;     // per place, all values in order of arrival, or empty
  at::Tensor bins_;                  // [places, kQuantileBins], counts; or empty
  at::Tensor histogram_;             // [places, kHistogramBins], counts; or empty
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_VALUE_SUMMARY_H_
