// Computes the numbers of activations and weights for one tensor at a time, by definition.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_VALUES_BY_HAND_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_VALUES_BY_HAND_H_

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {

// Values must be float64 with a deviation above 0.
inline std::map<std::string, double> ValuesByHand(const at::Tensor& values) {
  const at::Tensor x = values.flatten();
  const at::Tensor deviation = x - x.mean();
  const auto moment = [&](double power) { return deviation.pow(power).mean().item<double>(); };
  std::map<std::string, double> numbers = {{"mean", x.mean().item<double>()},
                                           {"variance", x.var(false).item<double>()},
                                           {"skewness", moment(3) / std::pow(moment(2), 1.5)},
                                           {"kurtosis", moment(4) / std::pow(moment(2), 2)},
                                           {"l2_norm", x.norm().item<double>()},
                                           {"minimum", x.min().item<double>()},
                                           {"maximum", x.max().item<double>()}};
  for (const auto& [name, level] : {std::pair("quantile_05", 0.05),
                                    {"quantile_25", 0.25},
                                    {"quantile_50", 0.5},
                                    {"quantile_75", 0.75},
                                    {"quantile_95", 0.95}}) {
    numbers[name] = at::quantile(x, level).item<double>();
  }
  return numbers;
}

// Expects equality up to `tolerance`, relative for numbers above 1.
inline void ExpectValues(const AnalysisResult& result, const std::string& place,
                         const at::Tensor& values, double tolerance) {
  for (const auto& [name, expected] : ValuesByHand(values)) {
    SCOPED_TRACE(name + "/" + place);
    EXPECT_NEAR(NumberIn(result, name + "/" + place), expected,
                tolerance * std::max(1.0, std::abs(expected)));
  }
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_VALUES_BY_HAND_H_
