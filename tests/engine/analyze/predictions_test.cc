#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

// Values that the analysis reads, one element for each prediction.
struct Predicted {
  explicit Predicted(const PlainSequence& sequence) : positions(at::tensor(sequence.positions)) {
    const at::Tensor log_p = sequence.by_depth.back(), p = log_p.exp();
    const at::Tensor targets = at::tensor(sequence.targets);
    losses = -log_p.gather(1, targets.unsqueeze(1)).squeeze(1);
    correct = log_p.argmax(1).eq(targets).to(at::kDouble);
    confidence = p.amax(1);
    entropy = at::special_entr(p).sum(1);
  }

  at::Tensor positions, losses, correct, confidence, entropy;
};

// Expects every number and array by its definition. Returns true if a sequence has two edges.
bool ExpectByDefinition(const std::vector<PlainSequence>& sequences, int64_t bins, int64_t edge,
                        Precision precision, const AnalysisResult& result) {
  const std::vector<Predicted> each(sequences.begin(), sequences.end());
  const auto all = [&](at::Tensor Predicted::*part) {
    std::vector<at::Tensor> parts;
    for (const Predicted& one : each) parts.push_back(one.*part);
    return at::cat(parts);
  };
  const auto near = [&](const at::Tensor& found, const at::Tensor& expected, double scale = 10) {
    ExpectNearIn(precision, found.item<double>(), expected.item<double>(), scale);
  };
  const auto expect = [&](const std::string& name, const at::Tensor& expected) {
    SCOPED_TRACE(name);
    ExpectNearIn(precision, NumberIn(result, name), expected.item<double>(), 10);
  };
  const at::Tensor losses = all(&Predicted::losses), correct = all(&Predicted::correct);
  const at::Tensor confidence = all(&Predicted::confidence);
  expect("loss", losses.mean());
  expect("accuracy", correct.mean());
  expect("confidence", confidence.mean());
  expect("entropy", all(&Predicted::entropy).mean());

  const at::Tensor bin_of = (confidence * bins).ceil().sub(1).clamp(0, bins - 1);
  at::Tensor error = at::zeros({}, at::kDouble);
  for (int64_t bin = 0; bin < bins; ++bin) {
    SCOPED_TRACE(bin);
    const at::Tensor held = bin_of.eq(bin), count = held.sum().to(at::kDouble);
    const at::Tensor accuracy = ArrayIn(result, "bin_accuracy")[bin];
    EXPECT_EQ(ArrayIn(result, "bin_targets")[bin].item<double>(), count.item<double>());
    if (count.item<double>() == 0) {
      EXPECT_TRUE(std::isnan(accuracy.item<double>()));
      continue;
    }
    const at::Tensor right = correct.index({held}).mean(), sure = confidence.index({held}).mean();
    error += count / losses.numel() * (right - sure).abs();
    near(accuracy, right, 1);
    near(ArrayIn(result, "bin_confidence")[bin], sure, 1);
  }
  expect("calibration_error", error);

  std::vector<at::Tensor> early, late;
  for (const Predicted& one : each) {
    const int64_t count = one.losses.numel();
    if (count < 2 * edge) continue;
    early.push_back(one.losses.narrow(0, 0, edge));
    late.push_back(one.losses.narrow(0, count - edge, edge));
  }
  if (early.empty()) {
    ExpectUndefined(result, Undefined::kTooFewTokens,
                    {"early_loss", "late_loss", "in_context_loss"});
  } else {
    expect("early_loss", at::cat(early).mean());
    expect("late_loss", at::cat(late).mean());
    expect("in_context_loss", at::cat(late).mean() - at::cat(early).mean());
  }

  const at::Tensor by_sequence = ArrayIn(result, "by_sequence/loss");
  const at::Tensor accuracies = ArrayIn(result, "by_sequence/accuracy")[0];
  const auto count = static_cast<int64_t>(each.size());
  EXPECT_EQ(by_sequence.sizes(), (std::vector<int64_t>{2, count}));
  EXPECT_NEAR(by_sequence[1].mean().item<double>(), 1, 1e-12) << "shares of the targets";
  for (int64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    const Predicted& one = each[static_cast<size_t>(i)];
    near(by_sequence[0][i], one.losses.sum() * count / losses.numel());
    const at::Tensor share = one.correct.sum() * count / losses.numel();
    EXPECT_NEAR(accuracies[i].item<double>(), share.item<double>(), 1e-12);
  }
  EXPECT_NEAR(by_sequence[0].mean().item<double>(), NumberIn(result, "loss"), 1e-12);
  EXPECT_NEAR(accuracies.mean().item<double>(), NumberIn(result, "accuracy"), 1e-12);

  const at::Tensor positions = all(&Predicted::positions);
  const at::Tensor found = ArrayIn(result, "loss_by_position");
  for (int64_t position = 0; position < found.size(0); ++position) {
    SCOPED_TRACE(position);
    const at::Tensor here = losses.index({positions.eq(position)});
    EXPECT_EQ(ArrayIn(result, "targets_by_position")[position].item<double>(),
              static_cast<double>(here.numel()));
    if (here.numel() > 0) {
      near(found[position], here.mean());
    } else {
      EXPECT_TRUE(std::isnan(found[position].item<double>()));
    }
  }
  return !early.empty();
}

TEST(PredictionsTest, EqualsAPlainModelInDrawnSettings) {
  int with_edges = 0;
  for (uint64_t number = 0; number < 32; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const AnalysisRequest request = PredictionsRequest(subject, 7, 2);
    with_edges += ExpectByDefinition(PlainSequences(request, false), 7, 2, subject.config.precision,
                                     Analyzed(request));
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
