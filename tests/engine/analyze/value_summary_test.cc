#include "server/engine/analyze/value_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/values_by_hand.h"

namespace ablate::engine {
namespace {

// Returns the summary of values [n] that arrive in parts of these lengths.
AnalysisResult SummaryOf(const at::Tensor& values, const std::vector<int64_t>& parts,
                         int64_t kept = kExactQuantiles, bool histograms = false) {
  ValueSummaries summaries({{"x", values.numel(), 0}}, histograms, values.scalar_type(), kept);
  for (int64_t pass = 0; pass < summaries.passes(); ++pass) {
    for (const at::Tensor& part : values.split_with_sizes(parts)) summaries.Add(pass, 0, part);
  }
  return summaries.Result();
}

at::Tensor OracleValues() { return R(4, {20}).pow(3) + 0.25; }

TEST(ValueSummariesTest, GiveTheOracle) {
  const AnalysisResult result = SummaryOf(OracleValues(), {20});
  ExpectOracle(NumberIn(result, "mean/x"), 0.3259551328);
  ExpectOracle(NumberIn(result, "variance/x"), 0.05717937808);
  ExpectOracle(NumberIn(result, "skewness/x"), 0.2423806701);
  ExpectOracle(NumberIn(result, "kurtosis/x"), 2.937287933);
  ExpectOracle(NumberIn(result, "quantile_05/x"), -0.04518123501);
  ExpectOracle(NumberIn(result, "quantile_25/x"), 0.2485477422);
  ExpectOracle(NumberIn(result, "quantile_50/x"), 0.2576269302);
}

TEST(ValueSummariesTest, AreTheSameInWhateverPartsValuesCome) {
  const at::Tensor values = OracleValues(), turned = values.flip(0);
  const AnalysisResult whole = SummaryOf(values, {20});
  for (const AnalysisResult& parts :
       {SummaryOf(values, {3, 8, 9}), SummaryOf(values, {1, 1, 18}), SummaryOf(turned, {7, 13})}) {
    ExpectSameNumbers(parts, whole, 1e-12);
  }
}

TEST(ValueSummariesTest, KeepTheirDigitsFarFromZero) {
  const AnalysisResult result = SummaryOf(OracleValues() + 1e6, {3, 8, 9});
  EXPECT_NEAR(NumberIn(result, "variance/x"), 0.05717937808, 1e-10);
  EXPECT_NEAR(NumberIn(result, "kurtosis/x"), 2.937287933, 1e-7);
}

TEST(ValueSummariesTest, ScaleWithTheirValues) {
  const AnalysisResult of = SummaryOf(OracleValues(), {20});
  const AnalysisResult moved = SummaryOf(-3 * OracleValues() + 2, {20});
  EXPECT_NEAR(NumberIn(moved, "skewness/x"), -NumberIn(of, "skewness/x"), 1e-12);
  EXPECT_NEAR(NumberIn(moved, "kurtosis/x"), NumberIn(of, "kurtosis/x"), 1e-12);
  EXPECT_NEAR(NumberIn(moved, "quantile_25/x"), -3 * NumberIn(of, "quantile_75/x") + 2, 1e-12);
  EXPECT_GE(NumberIn(of, "kurtosis/x"), std::pow(NumberIn(of, "skewness/x"), 2) + 1);
}

TEST(ValueSummariesTest, HaveNoKurtosisIfNothingVaries) {
  const AnalysisResult result = SummaryOf(at::full({9}, 0.1, at::kDouble), {4, 5});
  ExpectUndefined(result, Undefined::kZeroVariance, {"skewness/x", "kurtosis/x"});
  EXPECT_NEAR(NumberIn(result, "variance/x"), 0, 1e-30);
  EXPECT_EQ(NumberIn(result, "quantile_50/x"), 0.1);
  const AnalysisResult zeros = SummaryOf(at::zeros({9}, at::kDouble), {9}, 0, true);
  EXPECT_EQ(NumberIn(zeros, "quantile_50/x"), 0);
  EXPECT_EQ(ArrayIn(zeros, "histogram").sum().item<double>(), 9);
}

TEST(ValueSummariesTest, AreUndefinedWhereAValueIsNotFinite) {
  for (const double wrong :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    at::Tensor values = OracleValues();
    values[7] = wrong;
    for (const int64_t kept : {0, 100}) {
      const AnalysisResult result = SummaryOf(values, {5, 5, 10}, kept, true);
      ExpectUndefined(result, Undefined::kNonFinite,
                      {"mean/x", "variance/x", "kurtosis/x", "l2_norm/x", "maximum/x",
                       "quantile_05/x", "quantile_95/x"});
      EXPECT_EQ(ArrayIn(result, "histogram").sum().item<double>(), 0);
    }
  }
}

TEST(ValueSummariesTest, TakeQuantilesOfManyValuesFromBins) {
  const at::Tensor values = R(5, {5000}).pow(5) * 30;
  const AnalysisResult exact = SummaryOf(values, {2000, 3000});
  const AnalysisResult binned = SummaryOf(values, {2000, 3000}, 4999);
  const double scale = std::sqrt(NumberIn(exact, "variance/x"));
  const double width = (std::asinh(30 / scale) - std::asinh(-30 / scale)) / kQuantileBins;
  for (const char* name :
       {"quantile_05/x", "quantile_25/x", "quantile_50/x", "quantile_75/x", "quantile_95/x"}) {
    EXPECT_NE(NumberIn(binned, name), NumberIn(exact, name));
    EXPECT_NEAR(std::asinh(NumberIn(binned, name) / scale),
                std::asinh(NumberIn(exact, name) / scale), width)
        << name;
  }
}

TEST(ValueSummariesTest, FindQuantilesBetweenBinsFarApart) {
  // A quarter of the way from 0 to 100; there are no values in between.
  const at::Tensor values = at::tensor({0.0, 0.0, 100.0, 100.0}, at::kDouble);
  const AnalysisResult exact = SummaryOf(values, {4}), binned = SummaryOf(values, {4}, 0);
  EXPECT_EQ(NumberIn(exact, "quantile_50/x"), 50);
  EXPECT_NEAR(NumberIn(binned, "quantile_50/x"), 50, 0.2);
}

TEST(ValueSummariesTest, CountInBinsThatAllPlacesShare) {
  const at::Tensor small = 0.01 * R(6, {300}), large = 50 + 10 * R(7, {200});
  ValueSummaries summaries({{"small", 300, 0}, {"large", 200, 0}}, true, at::kDouble);
  ASSERT_EQ(summaries.passes(), 2);
  for (int64_t pass = 0; pass < 2; ++pass) {
    summaries.Add(pass, 0, small);
    summaries.Add(pass, 1, large);
  }
  const AnalysisResult result = summaries.Result();
  const at::Tensor counts = ArrayIn(result, "histogram"),
                   edges = ArrayIn(result, "histogram_edges");
  ASSERT_EQ(counts.sizes(), at::IntArrayRef({2, kHistogramBins}));
  ASSERT_EQ(edges.sizes(), at::IntArrayRef({kHistogramBins + 1}));
  EXPECT_TRUE(counts.sum(1).equal(at::tensor({300.0, 200.0}, at::kDouble)));
  EXPECT_NEAR(edges[0].item<double>(), small.min().item<double>(), 1e-12);
  EXPECT_NEAR(edges[kHistogramBins].item<double>(), large.max().item<double>(), 1e-9);
  // Counts up to every edge are exact, or differ by one because of rounding.
  for (int64_t bin = 0; bin < kHistogramBins; ++bin) {
    const at::Tensor edge = edges[bin + 1];
    EXPECT_NEAR(counts[0].narrow(0, 0, bin + 1).sum().item<double>(),
                small.lt(edge).sum().item<double>(), 1);
    EXPECT_NEAR(counts[1].narrow(0, 0, bin + 1).sum().item<double>(),
                large.lt(edge).sum().item<double>(), 1);
  }
  EXPECT_GT(counts[0].gt(0).sum().item<double>(), 20);  // resolved despite the large value
}

TEST(ValueSummariesTest, NameTheLargestFeature) {
  at::Tensor rows = R(8, {10, 4});
  rows.select(1, 2) *= 20;
  ValueSummaries summaries({{"x", 40, 4}, {"zeros", 4, 2}}, false, at::kDouble);
  summaries.Add(0, 0, rows.narrow(0, 0, 3));
  summaries.Add(0, 0, rows.narrow(0, 3, 7));
  summaries.Add(0, 1, at::zeros({2, 2}, at::kDouble));
  const AnalysisResult result = summaries.Result();
  EXPECT_EQ(NumberIn(result, "largest_feature/x"), 2);
  const at::Tensor squares = rows.square().sum(0);
  EXPECT_NEAR(NumberIn(result, "largest_feature_share/x"),
              (squares[2] / squares.sum()).item<double>(), 1e-14);
  ExpectUndefined(result, Undefined::kZeroDenominator,
                  {"largest_feature/zeros", "largest_feature_share/zeros"});
}

TEST(ValueSummariesTest, GoOnFromAnyState) {
  const at::Tensor values = OracleValues();
  for (const int64_t kept : {0, 20}) {
    const auto make = [&] {
      return std::make_unique<ValueSummaries>(std::vector<ValuePlace>{{"x", 20, 0}}, true,
                                              at::kDouble, kept);
    };
    auto summaries = make();
    for (int64_t pass = 0; pass < 2; ++pass) {
      for (const at::Tensor& part : values.split(6)) {
        summaries->Add(pass, 0, part);
        auto next = make();
        const std::vector<StateTensor> from = summaries->State(), to = next->State();
        ASSERT_EQ(from.size(), to.size());
        for (size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].tensor).copy_(from[i].tensor);
        summaries = std::move(next);
      }
    }
    const AnalysisResult whole = SummaryOf(values, {6, 6, 6, 2}, kept, true);
    ExpectSameNumbers(summaries->Result(), whole, 0);
  }
}

TEST(ValueSummariesTest, AgreeWithEachDefinition) {
  for (uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const auto n = static_cast<int64_t>(3 + i * i);
    const at::Tensor values = (R(300 + i, {n}) + 0.1 * static_cast<double>(i)).pow(3) * 5;
    ExpectValues(SummaryOf(values, {n / 3, n - n / 3 - 1, 1}), "x", values, 1e-10);
  }
}

}  // namespace
}  // namespace ablate::engine
