#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/plain_model.h"

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

// Features [first, first + count) of the activation at a place of the plain model.
struct Part {
  std::string place;
  int64_t first, count;
};

// Expects the loss and accuracy of a plain model in which parts are 0, or their means over all
// tokens.
void ExpectWithout(const std::vector<Part>& parts, bool by_means, const AnalysisSubject& subject,
                   const std::string& place, const AnalysisResult& result) {
  const AnalysisContext analysis = ContextOf(subject, 40);
  const SubjectModel& read = analysis.subjects[0];
  const PlainModel plain(read.config, read.values, read.buffers);
  std::map<std::string, std::vector<at::Tensor>> rows;  // by place
  double loss = 0, correct = 0;
  for (const bool replace : {false, true}) {
    for (const TokenBatch& batch : analysis.batches) {
      const auto change = [&](const std::string& at, const at::Tensor& x) {
        at::Tensor changed = x.clone();
        if (!replace) rows[at].push_back(x.to(at::kDouble));
        for (const Part& part : parts) {
          if (!replace || part.place != at) continue;
          const at::Tensor mean = at::cat(rows[at]).mean(0, true) * (by_means ? 1 : 0);
          changed.narrow(1, part.first, part.count).copy_(mean.narrow(1, part.first, part.count));
        }
        return changed;
      };
      const PlainModel::Evaluation score = plain.Evaluate(batch, change);
      if (!replace) continue;
      loss += score.loss.item<double>();
      correct += score.correct;
    }
  }
  const double targets = TargetsIn(analysis.batches);
  ExpectNearIn(read.config.precision, NumberIn(result, "loss" + place), loss / targets, 1);
  ExpectNearIn(read.config.precision, NumberIn(result, "accuracy" + place), correct / targets, 1);
}

TEST(RemoveTest, EqualsAPlainModelInDrawnSettings) {
  const at::NoGradGuard no_grad;
  int compared = 0;
  for (uint64_t number = 0; compared < 24; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const ModelConfig& model = subject.config.model;
    if (!Attends(model)) continue;
    ++compared;
    const std::string last = absl::StrCat("block.", model.layers - 1);
    const int64_t size = HeadSize(model), head = model.heads - 1;
    const auto expect = [&](RemovedPart part, Replacement by, const std::string& place,
                            const std::vector<Part>& parts) {
      ExpectWithout(parts, by == Replacement::kMean, subject, place,
                    Analyzed(RemoveRequest(subject, part, by)));
    };
    for (const Replacement by : {Replacement::kMean, Replacement::kZero}) {
      expect(RemovedPart::kHead, by, absl::StrCat("/", last, ".head.", head),
             {{last + ".attention.heads", head * size, size}});
      std::vector<Part> attention, feed_forward;
      for (int i = 0; i < model.layers; ++i) {
        attention.push_back({absl::StrCat("block.", i, ".attention"), 0, model.width});
        feed_forward.push_back({absl::StrCat("block.", i, ".feed_forward"), 0, model.width});
      }
      expect(RemovedPart::kAttention, by, "/all", attention);
      expect(RemovedPart::kFeedForward, by, "/all", feed_forward);
    }
    if (model.attention.kind != AttentionKind::kSoftmax) continue;
    expect(RemovedPart::kAttention, Replacement::kUniform, "/" + last + ".attention",
           {{last + ".attention.qkv", 0, model.width}});  // without queries all scores are equal
  }
}

}  // namespace
}  // namespace ablate::engine
