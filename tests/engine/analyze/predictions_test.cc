#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_predictions.h"

namespace ablate::engine {
namespace {

AnalysisRequest PredictionsRequest(const AnalysisSubject& subject, uint32_t bins = 15,
                                   uint32_t edge = 0) {
  return {PredictionsOptions{bins, edge}, {subject}, {60, ""}};
}

// Returns model M whose head is multiplied by a factor.
AnalysisSubject WithHeadTimes(double factor) {
  return Changed(ModelM(), [&](const ParameterInfo& parameter, at::Tensor values) {
    if (parameter.role == ParameterRole::kHead) values.mul_(factor);
  });
}

TEST(PredictionsTest, GivesTheOracle) {
  const std::vector<double> losses = {3.4047212404518,  1.6289297249588, 1.4702801225609,
                                      3.2010147025874,  2.0693244164593, 1.5075679967294,
                                      0.61047881980623, 3.4083030641673};
  for (const uint32_t edge : {2u, 0u}) {  // a quarter of 8 tokens is 2
    const AnalysisResult result = Analyzed(PredictionsRequest(ModelM(), 15, edge));
    ExpectOracle(NumberIn(result, "loss"), 2.1625775109651);
    ExpectOracle(NumberIn(result, "accuracy"), 0.125);
    ExpectOracle(NumberIn(result, "in_context_loss"), -0.50743454071852);
    ExpectOracle(NumberIn(result, "early_loss"), (losses[0] + losses[1]) / 2);
    ExpectOracle(NumberIn(result, "late_loss"), (losses[6] + losses[7]) / 2);
    EXPECT_TRUE(OtherNotes(result).empty());
    const at::Tensor by_position = ArrayIn(result, "loss_by_position");
    ASSERT_EQ(by_position.sizes(), std::vector<int64_t>{8});
    for (size_t i = 0; i < losses.size(); ++i) {
      ExpectOracle(by_position[static_cast<int64_t>(i)].item<double>(), losses[i]);
    }
    EXPECT_TRUE(at::equal(ArrayIn(result, "targets_by_position"), at::ones({8}, at::kDouble)));
  }
}

// Every number and array by its definition, from one prediction at a time.
class ByHand {
 public:
  ByHand(const std::vector<PlainSequence>& sequences, int bins, size_t edge)
      : bin_confidence_(static_cast<size_t>(bins)),
        bin_correct_(bin_confidence_),
        bin_targets_(bin_confidence_) {
    for (const PlainSequence& sequence : sequences) {
      std::vector<double> losses;
      const double correct_before = correct_;
      for (size_t i = 0; i < sequence.targets.size(); ++i) {
        const at::Tensor log_p = sequence.by_depth.back()[static_cast<int64_t>(i)];
        losses.push_back(-log_p[sequence.targets[i]].item<double>());
        Add(sequence.positions[i], losses.back(), log_p,
            log_p.argmax().item<int64_t>() == sequence.targets[i]);
      }
      if (!losses.empty()) {
        const double loss = std::accumulate(losses.begin(), losses.end(), 0.0);
        by_sequence_.emplace_back(loss, correct_ - correct_before);
      }
      if (losses.size() < 2 * edge) continue;
      for (size_t i = 0; i < edge; ++i) early_ += losses[i];
      for (size_t i = 0; i < edge; ++i) late_ += losses[losses.size() - 1 - i];
      in_edges_ += static_cast<double>(edge);
    }
  }

  void Expect(Precision precision, const AnalysisResult& result) const {
    const auto expect = [&](const std::string& name, double expected) {
      SCOPED_TRACE(name);
      ExpectNearIn(precision, NumberIn(result, name), expected, 10);
    };
    expect("loss", loss_ / targets_);
    expect("accuracy", correct_ / targets_);
    expect("confidence", confidence_ / targets_);
    expect("entropy", entropy_ / targets_);
    double error = 0;
    for (size_t bin = 0; bin < bin_targets_.size(); ++bin) {
      const auto at = static_cast<int64_t>(bin);
      const double held = bin_targets_[bin];
      EXPECT_EQ(ArrayIn(result, "bin_targets")[at].item<double>(), held) << bin;
      if (held == 0) {
        EXPECT_TRUE(std::isnan(ArrayIn(result, "bin_accuracy")[at].item<double>())) << bin;
        continue;
      }
      const double accuracy = bin_correct_[bin] / held, confidence = bin_confidence_[bin] / held;
      error += held / targets_ * std::abs(accuracy - confidence);
      ExpectNearIn(precision, ArrayIn(result, "bin_accuracy")[at].item<double>(), accuracy, 1);
      ExpectNearIn(precision, ArrayIn(result, "bin_confidence")[at].item<double>(), confidence, 1);
    }
    expect("calibration_error", error);
    if (in_edges_ > 0) {
      expect("early_loss", early_ / in_edges_);
      expect("late_loss", late_ / in_edges_);
      expect("in_context_loss", (late_ - early_) / in_edges_);
    } else {
      ExpectUndefined(result, Undefined::kTooFewTokens,
                      {"early_loss", "late_loss", "in_context_loss"});
    }
    ExpectSequences(precision, result);
    const at::Tensor losses = ArrayIn(result, "loss_by_position");
    const at::Tensor counts = ArrayIn(result, "targets_by_position");
    for (int64_t position = 0; position < losses.size(0); ++position) {
      SCOPED_TRACE(position);
      const auto of = by_position_.find(position);
      const bool any = of != by_position_.end();
      EXPECT_EQ(counts[position].item<double>(), any ? of->second.second : 0);
      const double loss = losses[position].item<double>();
      if (any) {
        ExpectNearIn(precision, loss, of->second.first / of->second.second, 10);
      } else {
        EXPECT_TRUE(std::isnan(loss));
      }
    }
  }

  void ExpectSequences(Precision precision, const AnalysisResult& result) const {
    const at::Tensor both = ArrayIn(result, "by_sequence/loss");
    const auto count = static_cast<double>(by_sequence_.size());
    ASSERT_EQ(both.sizes(), (std::vector<int64_t>{2, static_cast<int64_t>(count)}));
    const at::Tensor losses = both[0];
    const at::Tensor correct = ArrayIn(result, "by_sequence/accuracy")[0];
    EXPECT_NEAR(both[1].mean().item<double>(), 1, 1e-12) << "shares of the targets";
    for (size_t i = 0; i < by_sequence_.size(); ++i) {
      SCOPED_TRACE(i);
      const auto at = static_cast<int64_t>(i);
      ExpectNearIn(precision, losses[at].item<double>(), count * by_sequence_[i].first / targets_,
                   10);
      EXPECT_NEAR(correct[at].item<double>(), count * by_sequence_[i].second / targets_, 1e-12);
    }
    EXPECT_NEAR(losses.mean().item<double>(), NumberIn(result, "loss"), 1e-12);
    EXPECT_NEAR(correct.mean().item<double>(), NumberIn(result, "accuracy"), 1e-12);
  }

  bool has_edges() const { return in_edges_ > 0; }

 private:
  void Add(int64_t position, double loss, const at::Tensor& log_p, bool correct) {
    double entropy = 0, confidence = 0;
    for (int64_t token = 0; token < log_p.size(0); ++token) {
      const double p = std::exp(log_p[token].item<double>());
      if (p > 0) entropy -= p * std::log(p);
      confidence = std::max(confidence, p);
    }
    size_t bin = 0;
    const auto bins = static_cast<double>(bin_targets_.size());
    while (confidence > static_cast<double>(bin + 1) / bins) ++bin;
    bin = std::min(bin, bin_targets_.size() - 1);
    bin_confidence_[bin] += confidence;
    bin_correct_[bin] += correct ? 1 : 0;
    ++bin_targets_[bin];
    loss_ += loss;
    correct_ += correct ? 1 : 0;
    confidence_ += confidence;
    entropy_ += entropy;
    ++targets_;
    by_position_[position].first += loss;
    by_position_[position].second += 1;
  }

  double loss_ = 0, correct_ = 0, confidence_ = 0, entropy_ = 0, targets_ = 0;
  double early_ = 0, late_ = 0, in_edges_ = 0;
  std::vector<double> bin_confidence_, bin_correct_, bin_targets_;
  std::map<int64_t, std::pair<double, double>> by_position_;  // losses and targets
  std::vector<std::pair<double, double>> by_sequence_;        // losses and correct predictions
};

TEST(PredictionsTest, EqualsAPlainModelInDrawnSettings) {
  int with_edges = 0;
  for (uint64_t number = 0; number < 32; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const AnalysisRequest request = PredictionsRequest(subject, 7, 2);
    const ByHand by_hand(PlainSequences(request, false), 7, 2);
    by_hand.Expect(subject.config.precision, Analyzed(request));
    with_edges += by_hand.has_edges() ? 1 : 0;
  }
  EXPECT_GT(with_edges, 8);
  EXPECT_LT(with_edges, 32);
}

TEST(PredictionsTest, IsUniformWithoutAHead) {
  for (const uint32_t bins : {1u, 7u, 15u}) {
    const AnalysisResult result = Analyzed(PredictionsRequest(WithHeadTimes(0), bins));
    EXPECT_NEAR(NumberIn(result, "loss"), std::log(7), 1e-15);
    EXPECT_NEAR(NumberIn(result, "entropy"), std::log(7), 1e-15);
    EXPECT_NEAR(NumberIn(result, "confidence"), 1.0 / 7, 1e-16);
    EXPECT_NEAR(NumberIn(result, "in_context_loss"), 0, 1e-15);
    EXPECT_NEAR(NumberIn(result, "calibration_error"),
                std::abs(NumberIn(result, "accuracy") - 1.0 / 7), 1e-15);
  }
}

// A bin ends with its upper bound: ½ is in the first of two.
TEST(PredictionsTest, PutsABoundIntoTheBinBelow) {
  const auto [subject, prompt] = ModelOfRows(at::zeros({2, 3}, at::kDouble));
  const AnalysisSubject even =
      Changed(subject, [](const ParameterInfo&, at::Tensor values) { values.zero_(); });
  const AnalysisResult result =
      Analyzed({PredictionsOptions{2, 0}, {even}, {0, prompt}});  // of two tokens
  EXPECT_EQ(NumberIn(result, "confidence"), 0.5);
  EXPECT_TRUE(at::equal(ArrayIn(result, "bin_targets"), at::tensor({1.0, 0.0}, at::kDouble)));
}

TEST(PredictionsTest, IsOverconfidentWithALargeHead) {
  const AnalysisResult result = Analyzed(PredictionsRequest(WithHeadTimes(1e6)));
  EXPECT_EQ(NumberIn(result, "confidence"), 1);
  EXPECT_EQ(NumberIn(result, "entropy"), 0);
  EXPECT_EQ(NumberIn(result, "calibration_error"), 1 - 0.125);
  const at::Tensor targets = ArrayIn(result, "bin_targets");
  EXPECT_EQ(targets[14].item<double>(), 8);
  EXPECT_EQ(targets.sum().item<double>(), 8);
}

TEST(PredictionsTest, ComparesOnlySequencesWithTwoEdges) {
  const AnalysisResult whole = Analyzed(PredictionsRequest(ModelM(), 15, 4));
  const at::Tensor losses = ArrayIn(whole, "loss_by_position");
  ExpectOracle(NumberIn(whole, "early_loss"), losses.narrow(0, 0, 4).mean().item<double>());
  ExpectOracle(NumberIn(whole, "late_loss"), losses.narrow(0, 4, 4).mean().item<double>());

  const AnalysisResult result = Analyzed(PredictionsRequest(ModelM(), 15, 5));
  ExpectUndefined(result, Undefined::kTooFewTokens, {"early_loss", "late_loss", "in_context_loss"});
  ExpectOracle(NumberIn(result, "loss"), 2.1625775109651);
  EXPECT_THAT(OtherNotes(result),
              testing::ElementsAre("early_loss and late_loss are of the 0 of 1 sequences that have "
                                   "at least 10 targets, twice the edge"));
}

// The last token of a prompt has no target, so that the last edge ends before it.
TEST(PredictionsTest, ComparesTargetsOfAPrompt) {
  const AnalysisResult result = Analyzed({PredictionsOptions{15, 1}, {ModelM()}, {0, "becgbecg"}});
  const at::Tensor losses = ArrayIn(result, "loss_by_position");
  EXPECT_TRUE(std::isnan(losses[7].item<double>()));
  EXPECT_EQ(ArrayIn(result, "targets_by_position")[7].item<double>(), 0);
  ExpectOracle(NumberIn(result, "early_loss"), 3.4047212404518);
  ExpectOracle(NumberIn(result, "late_loss"), 0.61047881980623);
}

TEST(PredictionsTest, DoesNotDependOnTheBatches) {
  for (uint64_t number = 0; number < 12; ++number) {
    SCOPED_TRACE(number);
    ExpectEqualInOneBatch(PredictionsOptions{5, 1}, number);
  }
}

TEST(PredictionsTest, HasArraysOfItsCost) {
  const AnalysisRequest request = PredictionsRequest(ModelM(), 20);
  const AnalysisCost cost = CostOf(request, 8);
  constexpr size_t kOthers = 7;  // of the 8 sequences that 8 tokens may be, all except the one read
  EXPECT_EQ(cost.array_bytes, BytesOfArrays(Analyzed(request)) + 4 * sizeof(double) * kOthers);
  EXPECT_EQ(cost.state_bytes,
            (*MakeAnalysis(request))->state_bytes() + 3 * sizeof(double) * kOthers);
}

}  // namespace
}  // namespace ablate::engine
