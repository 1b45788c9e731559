// Tests which saved states Analysis::Restore accepts and continues bit for bit, and the note on a
// result that read less than was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "tests/engine/analyze/every_kind.h"
#include "tests/engine/analyze/pieces.h"

namespace ablate::engine {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<Analysis> AnalysisOf(const AnalysisOptions& options) {
  auto analysis = MakeAnalysis({options, {ModelM()}, {100, ""}});
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  return *std::move(analysis);
}

// Returns the state after one piece, with this revision; "" omits the revision.
std::string StateOfRevision(const AnalysisOptions& options, const std::string& revision) {
  const auto analysis = AnalysisOf(options);
  const std::atomic<bool> stop{false};
  EXPECT_TRUE(analysis->Advance(stop).ok());
  const auto state = analysis->Save();
  EXPECT_TRUE(state.ok()) << state.status();
  auto file = ParseSafetensors(*state);
  EXPECT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.erase("revision"), 1u);
  if (!revision.empty()) file->metadata["revision"] = revision;
  return *WriteSafetensors(file->tensors, file->metadata);
}

TEST(RestoreTest, RefusesAStateOfAnotherRevisionAndStaysAsItWas) {
  const GradientFlowOptions options;
  ASSERT_EQ(KindOf(options).revision, 1);
  for (const std::string revision : {"", "0", "2"}) {
    const auto analysis = AnalysisOf(options);
    const absl::Status restored = analysis->Restore(StateOfRevision(options, revision));
    EXPECT_TRUE(absl::IsInvalidArgument(restored)) << revision << ": " << restored;
    EXPECT_EQ(analysis->made(), 0);
  }
  const auto analysis = AnalysisOf(options);
  EXPECT_TRUE(analysis->Restore(StateOfRevision(options, "1")).ok());
  EXPECT_EQ(analysis->made(), 1);
}

TEST(RestoreTest, TakesAStateWithoutARevisionForOneOfRevision0) {
  const SpectrumOptions options;
  ASSERT_EQ(KindOf(options).revision, 0);
  const auto analysis = AnalysisOf(options);
  EXPECT_TRUE(analysis->Restore(StateOfRevision(options, "")).ok());
  EXPECT_EQ(analysis->made(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(analysis->Restore(StateOfRevision(options, "1"))));
}

TEST(RestoreTest, RefusesAStateOfAnotherKind) {
  const absl::Status restored =
      AnalysisOf(SpectrumOptions())->Restore(StateOfRevision(ActivationsOptions(), "0"));
  EXPECT_TRUE(absl::IsInvalidArgument(restored)) << restored;
}

TEST(RestoreTest, GivesTheSameBitsWhereverDrawnSubjectsAreCut) {
  struct Cut {
    AnalysisOptions options;
    std::vector<uint64_t> numbers;  // of drawn subjects
    uint64_t tokens;
  };
  const std::vector<Cut> cuts = {
      {ActivationsOptions{{}, true}, {0, 3}, 60},
      {AttentionOptions{}, {2, 3, 10}, 100},
      {CkaOptions{}, {0, 3}, 60},
      {GradientAlignmentOptions{}, {2, 3}, 400},
      {GradientFlowOptions{GradientSignal::kRule}, {2, 3}, 400},
      {LogitLensOptions{}, {0, 2, 5}, 60},
      {LogitLensOptions{LensStatistics::kCached}, {0, 2, 5}, 60},
      {NormJacobianOptions{}, {2, 3}, 400},
      {NormStatisticsOptions{{1, 2}}, {2, 3, 4}, 100},
      {PredictionsOptions{4, 1}, {0, 2, 5}, 60},
      {RemoveOptions{RemovedPart::kFeedForward, Replacement::kMean}, {2, 3}, 60},
      {RobustnessOptions{{}, {0.1, 1}, {0.1}, {0.1, 0.2}, LevelUnit::kAbsolute, 2}, {4}, 60},
      {WeightsOptions{true}, {0, 3}, 0}};
  for (const auto& [options, numbers, tokens] : cuts) {
    for (const uint64_t number : numbers) {
      const AnalysisSubject subject = DrawnSubject(number);
      SCOPED_TRACE(absl::StrCat(KindOf(options).name, " of subject ", number));
      if (!Accepts(options, subject.config)) continue;  // some have no attention
      ExpectSameBitsWhereverItIsCut({options, {subject}, {tokens, ""}});
    }
  }
}

TEST(RestoreTest, GivesTheSameBitsWhereverModelMIsCut) {
  RunConfig narrow = ModelM().config;
  narrow.precision = Precision::kFloat32;
  for (const AnalysisRequest& request : std::vector<AnalysisRequest>{
           {AttentionOptions{{AttentionMaps::kHeads}}, {ModelM()}, {0, "becgbecg"}},
           {HessianOptions{2, 7, 3, 2}, {ModelM()}, {1000, ""}},
           {HessianOptions{1, 4, 2, 1}, {UntrainedSubject(narrow)}, {1000, ""}},
           {LossLandscapeOptions{Direction::kFilter, 1, 2, 1, 4}, {ModelM()}, {1000, ""}},
           {LossLandscapeOptions{Direction::kFilter, 2, 2, 0.5, 3}, {ModelM()}, {1000, ""}},
           {LossLandscapeOptions{Direction::kLayer, 1, 1, 1, 3},
            {UntrainedSubject(narrow)},
            {1000, ""}},
           {NormResponseOptions{}, {}, {}, 3},
           {RemoveOptions{RemovedPart::kAttention, Replacement::kUniform}, {ModelM()}, {40, ""}}}) {
    SCOPED_TRACE(KindOf(request.options).name);
    ExpectSameBitsWhereverItIsCut(request);
  }
}

// Returns the notes on an analysis of a model that holds out one window of 8 tokens.
std::vector<std::string> NotesOf(const AnalysisInputs& inputs, const EvaluationConfig& evaluation) {
  AnalysisSubject model = ModelM();
  model.config.evaluation = evaluation;
  return Analyzed({GradientFlowOptions{}, {model}, inputs}).notes;
}

TEST(ShortfallTest, NamesWhatLimitsTheHeldOutData) {
  const EvaluationConfig all{.batches = 0};
  EXPECT_THAT(NotesOf({16, ""}, all),
              Contains("read 8 of 16 tokens: the run has no more held-out data"));
  EXPECT_THAT(NotesOf({1500, ""}, {.batches = 1}),
              Contains("read 8 of 1,500 tokens: evaluation.batches is 1"));
  EXPECT_THAT(NotesOf({1500, ""}, {.tokens = 8}),
              Contains("read 8 of 1,500 tokens: evaluation.tokens is 8"));
  EXPECT_THAT(NotesOf({0, "", 5}, {.batches = 1}),
              Contains("read 1 of 5 sequences: evaluation.batches is 1"));
  const auto text = std::make_shared<const std::string>("abcdefgabc");
  EXPECT_THAT(NotesOf({100, "", 0, text}, all),
              Contains("read 8 of 100 tokens: the data set has no more"));
}

TEST(ShortfallTest, IsNotedOnlyIfASequenceIsMissingOfWhatWasAskedFor) {
  const uint64_t by_default = KindOf(GradientFlowOptions()).default_tokens;
  for (const AnalysisInputs& inputs : {AnalysisInputs{15, ""}, AnalysisInputs{by_default, ""},
                                       AnalysisInputs{0, "", 1}, AnalysisInputs{0, "abc"}}) {
    EXPECT_THAT(NotesOf(inputs, {.batches = 1}), Not(Contains(StartsWith("read "))));
  }
}

}  // namespace
}  // namespace ablate::engine
