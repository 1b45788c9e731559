#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "server/engine/torch/train/recorder.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/plain_gradients.h"

namespace ablate::engine {
namespace {

AnalysisRequest AlignmentRequest(const AnalysisSubject& subject) {
  return {GradientAlignmentOptions{}, {subject}, {40, ""}};
}

// Returns model M with feedback alignment; `feedback` returns the matrix for a weight and its
// shape.
template <typename Feedback>
AnalysisSubject ModelMWithFeedback(const Feedback& feedback) {
  RunConfig run = ModelM().config;
  run.training.rule = LearningRule::kFeedbackAlignment;
  const ParameterLayout layout = MakeLayout(run.model, run.training.rule);
  const at::Tensor values = R(42, {440});
  AddOneToGains(layout, values);
  at::Tensor buffers = at::zeros({layout.buffer_size}, at::kDouble);
  for (const BufferInfo& buffer : layout.buffers) {
    const std::string weight = buffer.name.substr(0, buffer.name.rfind('.')) + ".weight";
    for (const ParameterInfo& parameter : layout.parameters) {
      if (parameter.name != weight) continue;
      buffers.narrow(0, buffer.offset, buffer.size)
          .copy_(feedback(values.narrow(0, parameter.offset, parameter.size), buffer));
    }
  }
  return {run, CheckpointOf(run, values, buffers)};
}

AnalysisSubject ModelMByR43() {
  return ModelMWithFeedback(
      [](const at::Tensor&, const BufferInfo& buffer) { return R(43, buffer.shape).flatten(); });
}

TEST(GradientAlignmentTest, GivesTheOracle) {
  // The reference's oracle without feedback for the head, because our rule has none there.
  const AnalysisResult result = Analyzed(AlignmentRequest(ModelMByR43()));
  ExpectOracle(NumberIn(result, "cosine"), 0.04747625104);
  ExpectOracle(NumberIn(result, "norm_ratio"), 1.390966242);
  ExpectOracle(NumberIn(result, "cosine/block.1.feed_forward.up.weight"), 0.5925213763);
  ExpectOracle(NumberIn(result, "cosine/block.0.attention.qkv.weight"), -0.2069734989);
  ExpectOracle(NumberIn(result, "cosine/token_embedding.weight"), 0.8267350003);
  ExpectOracle(NumberIn(result, "cosine/block.0"), -0.2664829042);
  ExpectOracle(NumberIn(result, "norm_ratio/block.0"), 1.197005019);
  ExpectOracle(NumberIn(result, "cosine/block.1"), 0.2489274303);
  ExpectOracle(NumberIn(result, "norm_ratio/block.1"), 1.976439857);
  ExpectOracle(NumberIn(result, "weight_cosine/block.1.feed_forward.up"), -0.02864666304);
  ExpectOracle(NumberIn(result, "weight_cosine/block.0.attention.qkv"), 0.04021872365);
  EXPECT_EQ(NumberIn(result, "cosine/head.weight"), 1);
  EXPECT_EQ(NumberIn(result, "norm_ratio/head.weight"), 1);
  // The last matrix is above every matrix that feedback replaces.
  EXPECT_EQ(NumberIn(result, "cosine/block.1.feed_forward.down.weight"), 1);
}

TEST(GradientAlignmentTest, IsExactlyOneWhereFeedbackIsTheWeight) {
  const AnalysisResult result = Analyzed(AlignmentRequest(
      ModelMWithFeedback([](const at::Tensor& weight, const BufferInfo&) { return weight; })));
  for (const AnalysisNumber& number : result.numbers) {
    EXPECT_FALSE(number.undefined.has_value()) << number.name;
    EXPECT_EQ(number.value, 1) << number.name;
  }
}

TEST(GradientAlignmentTest, IsExactlyOneForARunThatLearnsByBackprop) {
  const AnalysisResult result = Analyzed(AlignmentRequest(ModelM()));
  EXPECT_EQ(result.numbers.size(), 2u + 4 + 2 * 29);
  for (const AnalysisNumber& number : result.numbers) EXPECT_EQ(number.value, 1) << number.name;
}

TEST(GradientAlignmentTest, IsUndefinedWhereASideIsZero) {
  const auto none = [](const at::Tensor& weight, const BufferInfo&) {
    return at::zeros_like(weight);
  };
  const AnalysisResult result = Analyzed(AlignmentRequest(ModelMWithFeedback(none)));
  const std::string up = "/block.1.feed_forward.up.weight";
  EXPECT_EQ(ReasonIn(result, "cosine" + up), Undefined::kZeroGradient);
  EXPECT_EQ(NumberIn(result, "norm_ratio" + up), 0);
  EXPECT_EQ(ReasonIn(result, "weight_cosine/block.0.attention.qkv"), Undefined::kZeroDenominator);
  const auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  const AnalysisResult nothing = Analyzed({GradientAlignmentOptions{}, {subject}, {0, prompt}});
  ExpectUndefined(nothing, Undefined::kZeroGradient, {"cosine", "norm_ratio"});
}

TEST(GradientAlignmentTest, EqualsTwoBackwardPassesInDrawnSettings) {
  int aligned = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const RunConfig& run = subject.config;
    const AnalysisRequest request = AlignmentRequest(subject);
    const PlainGradients exact = PlainGradientsOf(request, {.statistics = Statistics::kBatch}, {});
    const PlainGradients learned = PlainGradientsOf(request,
                                                    {.rule = run.training.rule,
                                                     .norm_backward = run.model.norm.backward,
                                                     .statistics = Statistics::kBatch},
                                                    {});
    const AnalysisResult result = Analyzed(request);
    const auto flat = [](const PlainGradients& gradients) {
      std::vector<at::Tensor> parts;
      for (const at::Tensor& g : gradients.parameters) parts.push_back(g.flatten());
      return at::cat(parts);
    };
    const auto compare = [&](const std::string& place, const at::Tensor& a, const at::Tensor& b) {
      const double ours = a.norm().item<double>(), theirs = b.norm().item<double>();
      // A rounding error has no direction.
      if (ours < 1e-6 || theirs < 1e-6) return;
      const double cosine = (a * b).sum().item<double>() / (ours * theirs);
      ExpectNearIn(run.precision, NumberIn(result, "cosine" + place), cosine, 1);
      ExpectNearIn(run.precision, NumberIn(result, "norm_ratio" + place), ours / theirs, 1);
      if (run.training.rule != LearningRule::kBackprop) ++aligned;
    };
    compare("", flat(learned), flat(exact));
    const ParameterLayout layout = MakeLayout(run.model);
    for (size_t i = 0; i < layout.parameters.size(); ++i) {
      compare("/" + layout.parameters[i].name, learned.parameters[i], exact.parameters[i]);
    }
  }
  EXPECT_GT(aligned, 50);
}

// A shift that the next BatchNorm removes has a gradient of 0, and its float32 one is rounding.
TEST(GradientAlignmentTest, HasNoDirectionOfRoundingErrors) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
    RunConfig run = DrawnRun(8);
    run.precision = precision;
    run.model.layers = 2;
    run.model.residual = true;
    run.model.norm = NormConfig{.kind = NormKind::kBatch, .backward = NormBackward::kProjected};
    run.model.norm.placement = NormPlacement::kPost;
    run.model.norm.final = true;
    run.model.norm.bias = true;
    run.training.rule = LearningRule::kBackprop;
    run.training.batch = 1000;
    const AnalysisResult result = Analyzed(AlignmentRequest(SubjectOf(run, 8)));
    const std::string shift = "/block.1.feed_forward.norm.bias";
    ExpectUndefined(result, Undefined::kZeroGradient, {"cosine" + shift, "norm_ratio" + shift});
    EXPECT_GT(NumberIn(result, "cosine/block.0.feed_forward.up.weight"), 0);
  }
}

// Documents of several lengths, in one batch as in training.
TEST(GradientAlignmentTest, EqualsWhatTrainingRecordsOfABatchNorm) {
  for (const NormBackward backward : {NormBackward::kIdentity, NormBackward::kCenterScale}) {
    RunConfig run = DrawnRun(8);
    run.model.norm = NormConfig{.kind = NormKind::kBatch, .backward = backward};
    run.training.rule = LearningRule::kBackprop;
    run.training.batch = 1000;
    run.evaluation.record = {Record::kRuleAlignment};
    const AnalysisSubject subject = SubjectOf(run, 8);
    const AnalysisRequest request = AlignmentRequest(subject);
    const AnalysisContext analysis = *ReadAnalysisContext(request);
    ASSERT_EQ(analysis.batches.size(), 1u);
    ASSERT_FALSE(analysis.batches[0].uniform());
    const SubjectModel& model = analysis.subjects[0];
    const AnalysisResult result = Analyzed(request);
    double least = 1;
    for (const RecordedValue& recorded : RecordGradients(
             run, model.layout, model.values, model.buffers, BatchOf(model, analysis.batches[0]))) {
      const bool cosine = absl::StartsWith(recorded.key, "alignment/");
      const std::string block = recorded.key.substr(recorded.key.find('/'));
      ExpectNearIn(run.precision, NumberIn(result, (cosine ? "cosine" : "norm_ratio") + block),
                   recorded.value, 1);
      if (cosine) least = std::min(least, recorded.value);
    }
    EXPECT_LT(least, .99) << "a backward mode makes a difference";
  }
}

}  // namespace
}  // namespace ablate::engine
