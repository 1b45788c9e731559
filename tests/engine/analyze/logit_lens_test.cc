#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/target_logits.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_predictions.h"

namespace ablate::engine {
namespace {

AnalysisRequest LensRequest(const AnalysisSubject& subject, LensStatistics statistics) {
  return {LogitLensOptions{statistics}, {subject}, {60, ""}};
}

AnalysisResult Recomputed(const AnalysisSubject& subject) {
  return Analyzed(LensRequest(subject, LensStatistics::kRecomputed));
}

AnalysisResult Cached(const AnalysisSubject& subject) {
  return Analyzed(LensRequest(subject, LensStatistics::kCached));
}

TEST(LogitLensTest, GivesTheOracle) {
  const AnalysisResult result = Recomputed(ModelM());
  ExpectOracle(NumberIn(result, "loss"), 2.1625775109651);
  ExpectOracle(NumberIn(result, "accuracy"), 0.125);
  ExpectOracle(NumberIn(result, "loss/embedding"), 2.9674085999618);
  ExpectOracle(NumberIn(result, "loss/block.0"), 2.1800367533568);
  ExpectOracle(NumberIn(result, "loss/block.1"), 2.1625775109651);
  ExpectOracle(NumberIn(result, "divergence/embedding"), 0.27118340603255);
  ExpectOracle(NumberIn(result, "divergence/block.0"), 0.1142103114478);
  EXPECT_EQ(NumberIn(result, "divergence/block.1"), 0);
  EXPECT_EQ(NumberIn(result, "agreement/embedding"), 0.375);
  EXPECT_EQ(NumberIn(result, "agreement/block.0"), 0.625);
  EXPECT_EQ(NumberIn(result, "agreement/block.1"), 1);
  EXPECT_TRUE(OtherNotes(result).empty());
  for (const char* name : {"loss", "accuracy", "divergence", "agreement"}) {
    const at::Tensor array = ArrayIn(result, name);
    ASSERT_EQ(array.sizes(), std::vector<int64_t>{3}) << name;
    const std::string prefix = absl::StrCat(name, "/");
    EXPECT_EQ(array[0].item<double>(), NumberIn(result, prefix + "embedding"));
    EXPECT_EQ(array[2].item<double>(), NumberIn(result, prefix + "block.1"));
  }
}

TEST(LogitLensTest, GivesTheOracleWithCachedStatistics) {
  const AnalysisResult result = Cached(ModelM());
  ExpectOracle(NumberIn(result, "loss/embedding"), 2.4160198943182);
  ExpectOracle(NumberIn(result, "loss/block.0"), 2.829358790953);
  ExpectOracle(NumberIn(result, "loss/block.1"), 2.1625775109651);
  EXPECT_EQ(NumberIn(result, "divergence/block.1"), 0);
}

// Means over targets at one depth, as the analysis names them.
struct DepthMeans {
  double loss = 0;
  double accuracy = 0;
  double divergence = 0;
  double agreement = 0;
};

DepthMeans MeansAt(size_t depth, const std::vector<PlainSequence>& sequences) {
  DepthMeans means;
  double targets = 0;
  for (const PlainSequence& sequence : sequences) {
    for (size_t i = 0; i < sequence.targets.size(); ++i) {
      const at::Tensor here = sequence.by_depth[depth][static_cast<int64_t>(i)];
      const at::Tensor whole = sequence.by_depth.back()[static_cast<int64_t>(i)];
      const int64_t target = sequence.targets[i], likeliest = here.argmax().item<int64_t>();
      means.loss -= here[target].item<double>();
      means.accuracy += likeliest == target ? 1 : 0;
      means.divergence += (whole.exp() * (whole - here)).sum().item<double>();
      means.agreement += likeliest == whole.argmax().item<int64_t>() ? 1 : 0;
      ++targets;
    }
  }
  return {means.loss / targets, means.accuracy / targets, means.divergence / targets,
          means.agreement / targets};
}

TEST(LogitLensTest, EqualsAPlainModelInDrawnSettings) {
  for (uint64_t number = 0; number < 32; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const Precision precision = subject.config.precision;
    const auto statistics =
        number / 2 % 2 == 0 ? LensStatistics::kCached : LensStatistics::kRecomputed;
    const AnalysisRequest request = LensRequest(subject, statistics);
    const AnalysisResult result = Analyzed(request);
    const auto sequences = PlainSequences(request, statistics == LensStatistics::kCached);
    const int layers = subject.config.model.layers;
    for (int depth = 0; depth <= layers; ++depth) {
      const std::string place = depth == 0 ? "/embedding" : absl::StrCat("/block.", depth - 1);
      SCOPED_TRACE(place);
      const DepthMeans means = MeansAt(static_cast<size_t>(depth), sequences);
      ExpectNearIn(precision, NumberIn(result, "loss" + place), means.loss, 10);
      ExpectNearIn(precision, NumberIn(result, "accuracy" + place), means.accuracy, 1);
      ExpectNearIn(precision, NumberIn(result, "divergence" + place), means.divergence, 10);
      ExpectNearIn(precision, NumberIn(result, "agreement" + place), means.agreement, 1);
    }
  }
}

TEST(LogitLensTest, EndsWithTheEvaluationOfTheModel) {
  for (uint64_t number = 0; number < 16; ++number) {
    SCOPED_TRACE(number);
    const AnalysisRequest request = LensRequest(DrawnSubject(number), LensStatistics::kRecomputed);
    const AnalysisResult result = Analyzed(request);
    const Score sum = ScoreOfAll(*ReadAnalysisContext(request));
    const RunConfig& run = request.subjects[0].config;
    const std::string last = absl::StrCat("loss/block.", run.model.layers - 1);
    ExpectNearIn(run.precision, NumberIn(result, last), sum.loss / sum.targets, 1);
    EXPECT_EQ(NumberIn(result, "loss"), NumberIn(result, last));
    EXPECT_EQ(NumberIn(result, "accuracy"), sum.correct / sum.targets);
  }
}

TEST(LogitLensTest, HasOneKindOfStatisticsWithoutAFinalNormOfTokens) {
  bool norms = false, batch = false, without = false;
  for (uint64_t number = 0; !(norms && batch && without); ++number) {
    ASSERT_LT(number, 200u);
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const NormConfig& norm = subject.config.model.norm;
    const AnalysisResult recomputed = Recomputed(subject), cached = Cached(subject);
    if (!norm.final) {
      without = true;
      ExpectSameBits(recomputed, cached);
      EXPECT_THAT(OtherNotes(cached),
                  testing::ElementsAre(testing::HasSubstr("has no final norm")));
    } else if (norm.kind == NormKind::kBatch) {
      batch = true;
      ExpectSameBits(recomputed, cached);
      EXPECT_THAT(OtherNotes(cached),
                  testing::ElementsAre(testing::HasSubstr("running statistics")));
    } else {
      norms = true;
      EXPECT_NE(NumberIn(recomputed, "loss/embedding"), NumberIn(cached, "loss/embedding"));
      EXPECT_TRUE(OtherNotes(cached).empty());
    }
  }
}

// Returns model M with a vocabulary, of which the task has the first seven tokens.
AnalysisSubject ManyTokens(int vocabulary, int sequences) {
  RunConfig run = ModelM().config;
  std::vector<int> held_out;
  for (int i = 0; i <= 8 * sequences; ++i) held_out.push_back(i * i % 7);
  run.task = LettersTask(7, held_out);
  run.model.vocabulary = vocabulary;
  return SubjectOf(run, 5);
}

TEST(LogitLensTest, ReadsLogitsInChunks) {
  constexpr int kVocabulary = 20'000, kSequences = 40;
  const AnalysisRequest request = {LogitLensOptions{LensStatistics::kCached},
                                   {ManyTokens(kVocabulary, kSequences)},
                                   {8 * kSequences, ""}};
  const size_t targets = ReadAnalysisContext(request)->Batch(0).targets.size();
  ASSERT_GT(static_cast<int64_t>(targets) * kVocabulary, kLogitsInChunk);
  const AnalysisResult result = Analyzed(request);
  const auto sequences = PlainSequences(request, true);
  ASSERT_EQ(sequences.size(), size_t{kSequences});
  const DepthMeans means = MeansAt(1, sequences);
  ExpectOracle(NumberIn(result, "loss/block.0"), means.loss);
  ExpectOracle(NumberIn(result, "divergence/block.0"), means.divergence);
  ExpectOracle(NumberIn(result, "agreement/block.0"), means.agreement);
}

TEST(LogitLensTest, DoesNotDependOnTheBatches) {
  for (uint64_t number = 0; number < 12; ++number) {
    SCOPED_TRACE(number);
    ExpectEqualInOneBatch(LogitLensOptions{}, number);
    ExpectEqualInOneBatch(LogitLensOptions{LensStatistics::kCached}, number);
  }
}

// Predictions after the first block are not: diverged_test.cc.
TEST(LogitLensTest, HasThePredictionOfTheEmbeddingWhereTheFirstBlockDiverged) {
  const AnalysisResult result = Recomputed(DivergedModelM());
  ExpectOracle(NumberIn(result, "loss/embedding"), 2.9674085999618);
  EXPECT_EQ(ReasonIn(result, "accuracy/embedding"), std::nullopt);
}

TEST(TargetLogitsTest, VisitsEveryTargetOnce) {
  for (const int64_t targets : {0, 1, 4, 5, 8}) {
    std::vector<std::pair<int64_t, int64_t>> chunks;
    VisitTargetChunks(targets, kLogitsInChunk / 4,
                      [&](int64_t first, int64_t count) { chunks.emplace_back(first, count); });
    int64_t next = 0;
    for (const auto& [first, count] : chunks) {
      EXPECT_EQ(first, next);
      EXPECT_LE(count, 4);
      next += count;
    }
    EXPECT_EQ(next, targets);
    EXPECT_EQ(chunks.size(), static_cast<size_t>((targets + 3) / 4));
  }
}

}  // namespace
}  // namespace ablate::engine
