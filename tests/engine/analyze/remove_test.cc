#include <gtest/gtest.h>

#include <functional>

#include "tests/engine/analyze/drawn_subjects.h"

namespace ablate::engine {
namespace {

AnalysisRequest RemoveRequest(const AnalysisSubject& subject, RemovedPart part,
                              Replacement replacement) {
  return {RemoveOptions{part, replacement}, {subject}, {40, ""}};
}

TEST(RemoveTest, GivesTheOracleOfHeads) {
  const auto losses = [](Replacement replacement) {
    const AnalysisResult result =
        Analyzed(RemoveRequest(ModelM(), RemovedPart::kHead, replacement));
    ExpectOracles(result, {{"loss", 2.162577511}, {"accuracy", 0.125}});
    return result;
  };
  const AnalysisResult zero = losses(Replacement::kZero), mean = losses(Replacement::kMean);
  ExpectOracle(NumberIn(zero, "loss/block.0.head.0"), 2.359334358);
  ExpectOracle(NumberIn(zero, "loss/block.0.head.1"), 2.356572593);
  ExpectOracle(NumberIn(zero, "loss/block.1.head.0"), 2.133765764);
  ExpectOracle(NumberIn(zero, "loss/block.1.head.1"), 2.282592457);
  ExpectOracle(NumberIn(mean, "loss/block.0.head.0"), 2.160216492);
  ExpectOracle(NumberIn(mean, "loss/block.0.head.1"), 2.344874093);
  ExpectOracle(NumberIn(mean, "loss/block.1.head.0"), 2.221647666);
  ExpectOracle(NumberIn(mean, "loss_change/block.1.head.0"), 2.221647666 - 2.162577511);
  ExpectOracle(NumberIn(mean, "loss/block.1.head.1"), 2.151782167);
  const at::Tensor changes = ArrayIn(mean, "loss_change");
  ASSERT_EQ(changes.sizes(), (std::vector<int64_t>{2, 2}));
  ExpectOracle(changes[1][0].item<double>(), 2.221647666 - 2.162577511);
}

TEST(RemoveTest, GivesTheOracleOfWholeSublayers) {
  const auto expect = [](RemovedPart part, Replacement replacement, double first, double second) {
    const std::string name = part == RemovedPart::kAttention ? ".attention" : ".feed_forward";
    const AnalysisResult result = Analyzed(RemoveRequest(ModelM(), part, replacement));
    ExpectOracles(result, {{"loss/block.0", first}, {"loss/block.1", second}}, name);
    return result;
  };
  expect(RemovedPart::kAttention, Replacement::kUniform, 2.242554618, 2.209581952);
  expect(RemovedPart::kAttention, Replacement::kZero, 2.492495123, 2.273878397);
  const AnalysisResult feed_forward =
      expect(RemovedPart::kFeedForward, Replacement::kZero, 2.322797175, 2.207699896);
  EXPECT_EQ(ArrayIn(feed_forward, "accuracy_change").size(0), 2);
}

TEST(RemoveTest, RefusesWhatCantBeUniform) {
  for (const RemovedPart part : {RemovedPart::kHead, RemovedPart::kFeedForward}) {
    EXPECT_EQ(MakeAnalysis(RemoveRequest(ModelM(), part, Replacement::kUniform)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  AnalysisSubject none = ModelM();
  none.config.model.attention.kind = AttentionKind::kNone;
  EXPECT_EQ(
      MakeAnalysis(RemoveRequest(none, RemovedPart::kHead, Replacement::kMean)).status().code(),
      absl::StatusCode::kInvalidArgument);
}

// Computes a subject's loss and accuracy with some of its parameters changed.
class EditedModel {
 public:
  explicit EditedModel(const AnalysisRequest& request) : analysis_(*ReadAnalysisContext(request)) {}

  // Returns a parameter of a block, [shape…]; undefined if there is none.
  at::Tensor Of(int block, const std::string& name) {
    SubjectModel& subject = analysis_.subjects[0];
    const std::string full = "block." + std::to_string(block) + "." + name;
    for (size_t i = 0; i < subject.layout.parameters.size(); ++i) {
      if (subject.layout.parameters[i].name != full) continue;
      return ParameterViews(subject.layout, subject.values)[i];
    }
    return {};
  }

  // Returns means of a hook point over all tokens, [d].
  at::Tensor MeanAt(const std::string& hook_point) {
    std::vector<at::Tensor> rows;
    for (const TokenBatch& batch : analysis_.batches) {
      rows.push_back(CaptureRows(analysis_, analysis_.subjects[0], batch, {hook_point})[0]);
    }
    return at::cat(rows).mean(0);
  }

  void Expect(const std::string& place, const AnalysisResult& result) {
    const Score sum = ScoreOfAll(analysis_);
    const Precision precision = analysis_.subjects[0].config.precision;
    ExpectNearIn(precision, NumberIn(result, "loss" + place), sum.loss / sum.targets, 1);
    ExpectNearIn(precision, NumberIn(result, "accuracy" + place), sum.correct / sum.targets, 1);
  }

 private:
  AnalysisContext analysis_;
};

// Removes features [first, first + count) of a linear's input from its sum, and replaces them by
// `mean` [in] if given.
void TakeOut(const at::Tensor& weight, const at::Tensor& bias, int64_t first, int64_t count,
             const at::Tensor& mean) {
  const at::Tensor columns = weight.narrow(1, first, count);
  if (mean.defined()) {
    at::Tensor(bias).add_(
        columns.to(at::kDouble).mv(mean.narrow(0, first, count)).to(bias.scalar_type()));
  }
  columns.zero_();
}

TEST(RemoveTest, EqualsEditedParametersInDrawnSettings) {
  int compared = 0;
  for (uint64_t number = 0; compared < 24; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const ModelConfig& model = subject.config.model;
    if (!Attends(model)) continue;
    ++compared;
    const int block = model.layers - 1, head = model.heads - 1;
    const std::string place = "/block." + std::to_string(block);
    // A mean can only be absorbed by a bias.
    const bool mean = model.bias && number % 2 == 0;
    const Replacement replacement = mean ? Replacement::kMean : Replacement::kZero;
    const int64_t size = HeadSize(model);
    const auto result = [&](RemovedPart part, Replacement by) {
      return Analyzed(RemoveRequest(subject, part, by));
    };
    const AnalysisRequest request = RemoveRequest(subject, RemovedPart::kHead, replacement);

    EditedModel heads(request);
    const at::Tensor read =
        mean ? heads.MeanAt(HookPointName(HookPoint::kAttentionHeads, block)) : at::Tensor();
    TakeOut(heads.Of(block, "attention.projection.weight"),
            heads.Of(block, "attention.projection.bias"), head * size, size, read);
    heads.Expect(place + ".head." + std::to_string(head), result(RemovedPart::kHead, replacement));

    for (const bool attention : {true, false}) {
      EditedModel sublayers(request);
      const std::string linear = attention ? "attention.projection" : "feed_forward.down";
      std::vector<at::Tensor> means;
      for (int i = 0; i < model.layers; ++i) {
        const HookPoint hook_point =
            attention ? HookPoint::kAttentionOutput : HookPoint::kFeedForwardOutput;
        means.push_back(sublayers.MeanAt(HookPointName(hook_point, i)));
      }
      for (int i = 0; i < model.layers; ++i) {
        sublayers.Of(i, linear + ".weight").zero_();
        const at::Tensor bias = sublayers.Of(i, linear + ".bias");
        if (bias.defined() && mean) at::Tensor(bias).copy_(means[static_cast<size_t>(i)]);
        if (bias.defined() && !mean) bias.zero_();
      }
      sublayers.Expect(
          "/all",
          result(attention ? RemovedPart::kAttention : RemovedPart::kFeedForward, replacement));
    }

    if (model.attention.kind != AttentionKind::kSoftmax) continue;
    EditedModel even(request);  // equal attention scores for all keys
    even.Of(block, "attention.qkv.weight").narrow(0, 0, model.width).zero_();
    const at::Tensor bias = even.Of(block, "attention.qkv.bias");
    if (bias.defined()) bias.narrow(0, 0, model.width).zero_();
    even.Expect(place + ".attention", result(RemovedPart::kAttention, Replacement::kUniform));
  }
}

}  // namespace
}  // namespace ablate::engine
