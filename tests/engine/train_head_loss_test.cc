// Tests the loss of many logits in chunks, against all logits at once, and fused attention on a
// CPU.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <vector>

#include "server/engine/torch/model/head_loss.h"
#include "server/engine/torch/model/init.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/torch/train/torch_run.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

struct HeadCase {
  int64_t targets, vocabulary, width;
  bool bias, counted, micro_batch;
  double smoothing;
};

struct HeadInputs {
  at::Tensor x;
  LinearParameters head;
  BatchTensors batch;
  Objective objective;

  std::vector<at::Tensor> Leaves() const {
    std::vector<at::Tensor> leaves = {x, head.weight};
    if (head.bias.defined()) leaves.push_back(head.bias);
    return leaves;
  }
};

HeadInputs Draw(const HeadCase& is, at::ScalarType type) {
  at::manual_seed(7);
  const at::TensorOptions options = at::TensorOptions().dtype(type);
  HeadInputs inputs;
  inputs.x = at::randn({is.targets, is.width}, options).requires_grad_();
  inputs.head.weight = at::randn({is.vocabulary, is.width}, options).requires_grad_();
  if (is.bias) inputs.head.bias = at::randn({is.vocabulary}, options).requires_grad_();
  inputs.batch.targets = at::randint(is.vocabulary, {is.targets}, at::kLong);
  if (is.counted)
    inputs.batch.counted = at::arange(is.targets, options).remainder(3).ne(1).to(type);
  inputs.objective.label_smoothing = is.smoothing;
  if (is.micro_batch) inputs.objective.targets = at::full({}, 3.0 * is.targets, options);
  return inputs;
}

double Difference(const at::Tensor& got, const at::Tensor& expected) {
  return ((got - expected).norm() / expected.norm()).item<double>();
}

void ExpectEqualLosses(const HeadCase& is, at::ScalarType type, double tolerance) {
  const HeadInputs inputs = Draw(is, type);
  const at::Tensor logits = Head(inputs.x, inputs.head);
  const at::Tensor expected = MeanLoss(logits, inputs.batch, inputs.objective);
  const at::Tensor got =
      MeanHeadLoss(inputs.x, {inputs.head}, inputs.batch, inputs.objective, std::nullopt);
  EXPECT_EQ(got.scalar_type(), type);
  EXPECT_LE(Difference(got, expected), tolerance);
  // Times 3, so that the factor of an outer function counts.
  const auto wanted = torch::autograd::grad({expected * 3}, inputs.Leaves());
  const auto found = torch::autograd::grad({got * 3}, inputs.Leaves());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(Difference(found[i], wanted[i]), tolerance) << "gradient " << i;
  }
  const at::Tensor score = ScoreHead(inputs.x, {inputs.head}, inputs.batch, std::nullopt);
  const at::Tensor all = ScoreLogits(logits.detach(), inputs.batch);
  EXPECT_LE(Difference(score[0], all[0]), tolerance);
  EXPECT_TRUE(score[1].equal(all[1]));
  EXPECT_TRUE(score[2].equal(all[2]));
}

TEST(HeadLossTest, IsThatOfAllLogits) {
  ExpectEqualLosses({13, 50, 6, false, false, false, 0}, at::kDouble, 1e-13);
  ExpectEqualLosses({13, 50, 6, true, true, false, 0}, at::kDouble, 1e-13);
  ExpectEqualLosses({13, 50, 6, true, true, true, 0.1}, at::kDouble, 1e-13);
  ExpectEqualLosses({13, 50, 6, false, false, false, 0.3}, at::kFloat, 2e-6);
}

// Chunks have 32 targets here. Float32 sums over a million tokens differ by some 2e-3 between two
// orders; the gradients of a chunk that is left out, by 0.4.
TEST(HeadLossTest, IsThatOfAllLogitsOverSeveralChunks) {
  ExpectEqualLosses({40, 1 << 20, 2, true, true, false, 0.1}, at::kFloat, 0.02);
}

TEST(HeadLossTest, RoundsFactorsToBfloat16) {
  const HeadInputs inputs = Draw({64, 300, 32, false, false, false, 0}, at::kFloat);
  const auto loss = [&](std::optional<at::ScalarType> factors) {
    return MeanHeadLoss(inputs.x, {inputs.head}, inputs.batch, {}, factors);
  };
  const at::Tensor exact = loss(std::nullopt), rounded = loss(at::kBFloat16);
  EXPECT_EQ(rounded.scalar_type(), at::kFloat);
  EXPECT_GT(Difference(rounded, exact), 0);
  EXPECT_LE(Difference(rounded, exact), 0.01);
  const auto gradients = torch::autograd::grad({rounded}, inputs.Leaves());
  const auto exactly = torch::autograd::grad({exact}, inputs.Leaves());
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_EQ(gradients[i].scalar_type(), at::kFloat);
    EXPECT_LE(Difference(gradients[i], exactly[i]), 0.02);
  }
}

TEST(HeadLossTest, CanNotBeDifferentiatedTwice) {
  const HeadInputs inputs = Draw({4, 5, 3, false, false, false, 0}, at::kDouble);
  const at::Tensor loss = MeanHeadLoss(inputs.x, {inputs.head}, inputs.batch, {}, std::nullopt);
  EXPECT_THROW(torch::autograd::grad({loss}, {inputs.x}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               c10::Error);
  torch::autograd::grad({loss}, {inputs.x}, {}, /*retain_graph=*/true);
  EXPECT_THROW(torch::autograd::grad({loss}, {inputs.x}), c10::Error);
}

// A window that is long enough for fused attention, and with enough tokens for chunks.
TEST(BatchLossTest, IsTheSameForPassesThatAreDifferentiatedOnce) {
  RunConfig run = SmallTextRun(1);
  run.model.vocabulary = 1 << 17;
  run.model.context = 256;
  run.model.tied_head = true;
  run.model.head_bias = false;
  run.precision = Precision::kFloat64;
  FlatParameters parameters(run.model, LearningRule::kBackprop,
                            TensorOptionsOf(at::kCPU, run.precision));
  parameters.values().copy_(InitialParameters(run.model, parameters.layout(), 1));
  TokenBatch batch;
  batch.rows = 1;
  batch.length = 256;
  batch.lengths = {256};
  for (int i = 0; i < 256; ++i) {
    batch.inputs.push_back(static_cast<uint32_t>(i * 511));
    batch.targets.push_back(static_cast<uint32_t>(i * 300));
  }
  ASSERT_TRUE(HasManyLogits(256, run.model.vocabulary));
  const std::vector<BatchTensors> tensors = {
      TensorsOf(batch, TensorOptionsOf(at::kCPU, run.precision))};
  const at::Tensor often = Differentiate(run.model, {}, tensors, parameters);
  const at::Tensor expected = parameters.gradients().clone();
  const at::Tensor once = Differentiate(run.model, {.once = true}, tensors, parameters);
  EXPECT_LE(Difference(once, often), 1e-13);
  EXPECT_LE(Difference(parameters.gradients(), expected), 1e-12);
}

}  // namespace
}  // namespace ablate::engine
