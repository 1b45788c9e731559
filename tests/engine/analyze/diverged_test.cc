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

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Returns the subject with parameters and buffers changed by `change`.
template <typename Change>
AnalysisSubject Changed(const AnalysisSubject& subject, const Change& change) {
  const SubjectModel model = *ReadSubject(subject.config, subject.checkpoint);
  for (const ParameterInfo& parameter : model.layout.parameters) {
    change(parameter.name, model.values.narrow(0, parameter.offset, parameter.size));
  }
  return {subject.config, CheckpointOf(subject.config, model.values, model.buffers)};
}

AnalysisSubject WithNaNIn(const std::string& name, const AnalysisSubject& subject) {
  return Changed(subject, [&](const std::string& parameter, at::Tensor values) {
    if (parameter == name) values[0].fill_(kNaN);
  });
}

AnalysisSubject Times(double factor, const AnalysisSubject& subject) {
  return Changed(subject, [&](const std::string&, at::Tensor values) { values.mul_(factor); });
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

TEST(DivergedTest, WhatOverflowsIsNoNumber) {
  const AnalysisSubject large = Changed(ModelM(), [](const std::string& name, at::Tensor values) {
    if (name == "head.weight") values.mul_(1e200);
  });
  const AnalysisResult flow = Analyzed({GradientFlowOptions{}, {large}, {60, ""}});
  EXPECT_EQ(ReasonIn(flow, "relative_gradient/head.weight"), Undefined::kNonFinite);
  EXPECT_EQ(ReasonIn(flow, "gradient_ratio/embedding"), Undefined::kNonFinite);
  const AnalysisResult jacobian = Analyzed({NormJacobianOptions{}, {large}, {60, ""}});
  EXPECT_EQ(ReasonIn(jacobian, "cosine_identity/final_norm"), Undefined::kNonFinite);
  EXPECT_EQ(ReasonIn(jacobian, "r_mean"), Undefined::kNonFinite);

  const AnalysisSubject wide = Changed(ModelM(), [](const std::string& name, at::Tensor values) {
    if (name == "token_embedding.weight") values.mul_(1e200);
  });
  const AnalysisResult cka =
      Analyzed({CkaOptions{{"embedding", "block.0.output"}}, {wide}, {60, ""}});
  EXPECT_EQ(ReasonIn(cka, "cka/embedding/block.0.output"), Undefined::kNonFinite);
  const AnalysisResult spectrum = Analyzed({SpectrumOptions{"embedding"}, {wide}, {60, ""}});
  EXPECT_EQ(ReasonIn(spectrum, "participation_ratio"), Undefined::kNonFinite);
  EXPECT_EQ(ReasonIn(spectrum, "uncentred_stable_rank"), Undefined::kNonFinite);
}

TEST(DivergedTest, ACosineDoesNotOverflowBeforeItsVectorsDo) {
  const AnalysisSubject large = Changed(ModelM(), [](const std::string& name, at::Tensor values) {
    if (name == "head.weight") values.mul_(1e100);
  });
  const AnalysisResult result = Analyzed({GradientAlignmentOptions{}, {large}, {60, ""}});
  EXPECT_NEAR(NumberIn(result, "cosine"), 1, 1e-12);
  EXPECT_EQ(NumberIn(result, "norm_ratio"), 1);
}

}  // namespace
}  // namespace ablate::engine
