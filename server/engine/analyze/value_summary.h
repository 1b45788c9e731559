// Scale and shape of the values at several places, such as sites of a model or its parameters:
// moments, extremes, quantiles and histograms, from values that come in parts.
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
  int64_t values = 0;    // in all, at least 1
  int64_t features = 0;  // of which rows have one value each; 0 where values come in no rows
};

// Bins of equal width in asinh(x/scale), the first from `low` on, the last up to `high`.
struct AsinhBins {
  double scale = 1;
  double low = 0;
  double high = 1;
};

// Every value is added once in each pass, those of a place in the same order.
class ValueSummaries {
 public:
  // `precision` is that in which values come. Quantiles are exact at places of at most `kept`
  // values.
  ValueSummaries(std::vector<ValuePlace> places, bool histograms, at::ScalarType precision,
                 int64_t kept = kExactQuantiles);

  // Over all values: 2 if histograms are wanted, or quantiles from bins, else 1.
  int64_t passes() const { return passes_; }
  // Of one place, [n, features], or [n] where it has none, n at least 1.
  void Add(int64_t pass, size_t place, const at::Tensor& values);
  std::vector<StateTensor> State();
  // After all passes.
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
  std::vector<at::Tensor> squares_;  // of each place, Σx² by feature; empty where it has none
  std::vector<at::Tensor> kept_;     // all its values, in the order that they came in; or empty
  at::Tensor bins_;                  // [places, kQuantileBins], counts; or empty
  at::Tensor histogram_;             // [places, kHistogramBins], counts; or empty
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_VALUE_SUMMARY_H_
