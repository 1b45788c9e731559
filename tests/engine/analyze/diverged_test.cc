// Tests analyses of models that have diverged or are about to: every kind returns a number or a
// reason for each of its names, and computes no number from NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/every_kind.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

// Returns the subject with the parameters whose name begins with `name` multiplied by `factor`.
AnalysisSubject Times(double factor, const AnalysisSubject& subject, const std::string& name = "") {
  return Changed(subject, [&](const ParameterInfo& parameter, at::Tensor values) {
    if (parameter.name.starts_with(name)) values.mul_(factor);
  });
}

// Expects numbers, or reasons, from every kind that accepts such a model.
void ExpectNumbersOrReasons(const AnalysisSubject& subject) {
  for (const AnalysisOptions& options : EveryKind()) {
    const AnalysisKind& kind = KindOf(options);
    SCOPED_TRACE(kind.name);
    if (!Accepts(options, subject.config)) continue;
    const AnalysisRequest request = {options, LeastSubjects(kind, subject),
                                     InputsOf(options, subject.config)};
    for (const AnalysisNumber& number : Analyzed(request).numbers) {
      EXPECT_TRUE(number.undefined.has_value() || std::isfinite(number.value)) << number.name;
    }
  }
}

TEST(DivergedTest, EveryKindIsHere) {
  std::set<size_t> kinds;
  for (const AnalysisOptions& options : EveryKind()) kinds.insert(options.index());
  EXPECT_EQ(kinds.size(), AnalysisKinds().size());
}

TEST(DivergedTest, EveryKindGivesNumbersOrReasonsWhereAParameterIsNone) {
  for (const char* name : {"token_embedding.weight", "block.0.attention.qkv.weight",
                           "block.1.feed_forward.down.weight", "final_norm.weight"}) {
    SCOPED_TRACE(name);
    ExpectNumbersOrReasons(WithNaNIn(name, ModelM()));
  }
  for (uint64_t number = 0; number < 12; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    ExpectNumbersOrReasons(WithNaNIn("block.0.feed_forward.up.weight", subject));
  }
}

TEST(DivergedTest, EveryKindGivesNumbersOrReasonsOfHugeParameters) {
  for (const double factor : {1e30, 1e200}) {
    SCOPED_TRACE(factor);
    ExpectNumbersOrReasons(Times(factor, ModelM()));
  }
  for (uint64_t number = 0; number < 12; ++number) {
    SCOPED_TRACE(number);
    ExpectNumbersOrReasons(Times(1e30, DrawnSubject(number)));
  }
}

// The embedding is NaN, and so is everything computed from it.
TEST(DivergedTest, NothingIsMadeOfWhatIsNoNumber) {
  for (const AnalysisOptions& options : EveryKind()) {
    const AnalysisKind& kind = KindOf(options);
    if (kind.name == "weights" || kind.name == "norm_response") continue;  // without a pass
    SCOPED_TRACE(kind.name);
    const AnalysisSubject subject = WithNaNIn("position_embedding.weight", ModelM());
    const AnalysisRequest request = {options, LeastSubjects(kind, subject),
                                     InputsOf(options, subject.config)};
    for (const AnalysisNumber& number : Analyzed(request).numbers) {
      if (number.name == "holes") continue;     // it counts them
      if (number.name == "majority") continue;  // of labels alone
      if (number.name == "dependency_offset" || number.name == "dependency_words") {
        continue;  // of heads alone
      }
      if (number.name.ends_with("_chance")) continue;  // without a pass
      if (number.name == "embedding_rms") continue;    // without positions
      EXPECT_EQ(number.undefined, Undefined::kNonFinite) << number.name << " " << number.value;
    }
  }
}

// Weights of the first block are NaN.
TEST(DivergedTest, HasNoNumbersOfWhatReadsTheFirstBlock) {
  const std::vector<std::pair<AnalysisOptions, std::vector<std::string>>> cases = {
      {AttentionOptions{},
       {"entropy", "sink_share", "head_distance/block.1", "mean_map_entropy",
        "head_distance_without_first"}},
      {GradientAlignmentOptions{},
       {"cosine", "norm_ratio", "cosine/block.0", "norm_ratio/head.weight"}},
      {GradientFlowOptions{},
       {"gradient/embedding", "gradient_ratio/embedding", "log_slope", "vanished_states",
        "parameter_gradient", "relative_gradient/block.0.feed_forward.up.weight"}},
      {LogitLensOptions{},
       {"loss", "accuracy", "loss/block.0", "accuracy/block.1", "divergence/embedding",
        "agreement/embedding", "agreement/block.1"}},
      {NormJacobianOptions{}, {"r_mean", "cosine_identity/final_norm"}},
      {PatchOptions{
           {"abcd", "dgac", "fbbe"}, {"abed", "dgbc", "cfbe"}, {"b", "f", "a"}, {"d", "a", "g"}},
       {}},
      {PredictionsOptions{}, {}}};
  for (const auto& [options, names] : cases) {
    SCOPED_TRACE(KindOf(options).name);
    const AnalysisResult result = Analyzed({options, {DivergedModelM()}, {60, ""}});
    ExpectUndefined(result, Undefined::kNonFinite, names);
  }
}

// A prompt of one token has none.
TEST(DivergedTest, HasNoNumbersWithoutATarget) {
  const auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  const auto result = [&](const AnalysisOptions& options) {
    return Analyzed({options, {subject}, {0, prompt}});
  };
  for (const AnalysisOptions& options :
       std::vector<AnalysisOptions>{LogitLensOptions{}, PredictionsOptions{}}) {
    SCOPED_TRACE(KindOf(options).name);
    const AnalysisResult none = result(options);
    ExpectUndefined(none, Undefined::kTooFewTokens);
    EXPECT_TRUE(none.arrays.empty());
  }
  EXPECT_EQ(result(LogitLensOptions{}).numbers.size(), 2u + 4 * 2);
  EXPECT_EQ(result(PredictionsOptions{}).numbers.size(), 8u);
  ExpectUndefined(result(RemoveOptions{RemovedPart::kFeedForward, Replacement::kZero}),
                  Undefined::kTooFewTokens, {"loss", "loss_change/all"});
}

TEST(DivergedTest, WhatOverflowsIsNoNumber) {
  const AnalysisSubject large = Times(1e200, ModelM(), "head.weight");
  const AnalysisResult flow = Analyzed({GradientFlowOptions{}, {large}, {60, ""}});
  ExpectUndefined(flow, Undefined::kNonFinite,
                  {"relative_gradient/head.weight", "gradient_ratio/embedding"});
  const AnalysisResult jacobian = Analyzed({NormJacobianOptions{}, {large}, {60, ""}});
  ExpectUndefined(jacobian, Undefined::kNonFinite, {"cosine_identity/final_norm", "r_mean"});

  const AnalysisSubject wide = Times(1e200, ModelM(), "token_embedding.weight");
  const AnalysisResult cka =
      Analyzed({CkaOptions{{"embedding", "block.0.output"}}, {wide}, {60, ""}});
  ExpectUndefined(cka, Undefined::kNonFinite, {"cka/embedding/block.0.output"});
  const AnalysisResult spectrum = Analyzed({SpectrumOptions{"embedding"}, {wide}, {60, ""}});
  ExpectUndefined(spectrum, Undefined::kNonFinite,
                  {"participation_ratio", "uncentred_stable_rank"});
}

TEST(DivergedTest, ACosineDoesNotOverflowBeforeItsVectorsDo) {
  const AnalysisSubject large = Times(1e100, ModelM(), "head.weight");
  const AnalysisResult result = Analyzed({GradientAlignmentOptions{}, {large}, {60, ""}});
  EXPECT_NEAR(NumberIn(result, "cosine"), 1, 1e-12);
  EXPECT_EQ(NumberIn(result, "norm_ratio"), 1);
}

}  // namespace
}  // namespace ablate::engine
