// Tests that every kind of analysis reads models with each switch: it gives numbers, or reasons,
// and refuses only what has no such number.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/analyze/every_kind.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

struct Switched {
  const char* name;
  void (*change)(ModelConfig& model);
};

const Switched kSwitched[] = {
    {"kv_heads", [](ModelConfig& m) { m.attention.kv_heads = 1; }},
    {"qk_norm",
     [](ModelConfig& m) {
       m.attention.qk_norm = {QkNormKind::kRms, QkNormScope::kAll, QkNormPlace::kAfter, true, 0.5};
       m.positions = Positions::kRotary;
     }},
    {"caps",
     [](ModelConfig& m) {
       m.attention.score_cap = 1;
       m.logit_cap = 2;
     }},
    {"window",
     [](ModelConfig& m) {
       m.attention.window = 2;
       m.attention.full_every = 2;
     }},
    {"sink", [](ModelConfig& m) { m.attention.sink = true; }},
    {"value_residual",
     [](ModelConfig& m) { m.attention.value_residual = ValueResidual::kLearned; }},
    {"alibi", [](ModelConfig& m) { m.positions = Positions::kAlibi; }},
    {"rotary",
     [](ModelConfig& m) {
       m.positions = Positions::kRotary;
       m.rotary = {500, 1, 2};
     }},
    {"parallel", [](ModelConfig& m) { m.parallel = true; }},
    {"shapes",
     [](ModelConfig& m) {
       m.attention.head_size = m.width / m.heads + 2;
       m.bias = false;
       m.attention.qkv_bias = true;
       m.parallel = m.parallel_norms = true;
     }},
    {"update_gain", [](ModelConfig& m) { m.update_gain = UpdateGain::kFeature; }},
    {"embeddings",
     [](ModelConfig& m) {
       m.embedding_norm = true;
       m.embedding_scale = 2;
       m.base_width = 2;
     }},
    {"one_plus", [](ModelConfig& m) { m.norm.gain_form = GainForm::kOnePlus; }},
    {"dyt", [](ModelConfig& m) { m.norm.kind = NormKind::kDyt; }},
    {"derf", [](ModelConfig& m) { m.norm.kind = NormKind::kDerf; }},
    {"relu2", [](ModelConfig& m) { m.activation = Activation::kRelu2; }},
    {"geglu", [](ModelConfig& m) { m.activation = Activation::kGeglu; }},
    {"reglu", [](ModelConfig& m) { m.activation = Activation::kReglu; }},
};

// Returns model M with a switch and other parameters.
AnalysisSubject ModelWith(const Switched& one) {
  RunConfig run = ModelM().config;
  one.change(run.model);
  const ParameterLayout layout = MakeLayout(run.model);
  const at::Tensor values = R(42, {layout.size});
  AddOneToGains(layout, values);
  return {run, CheckpointOf(run, values)};
}

TEST(SwitchesTest, EveryKindReadsModelsWithEachSwitch) {
  const RunConfig plain = ModelM().config;
  for (const Switched& one : kSwitched) {
    const AnalysisSubject subject = ModelWith(one);
    for (const AnalysisOptions& options : EveryKind()) {
      const AnalysisKind& kind = KindOf(options);
      SCOPED_TRACE(testing::Message() << kind.name << " with " << one.name);
      const bool has_no_statistics = IsPointwise(subject.config.model.norm.kind);
      if (has_no_statistics && kind.name == "norm_jacobian") {
        EXPECT_FALSE(Accepts(options, subject.config));
        continue;
      }
      ASSERT_EQ(Accepts(options, subject.config), Accepts(options, plain));
      if (!Accepts(options, subject.config)) continue;
      const AnalysisResult result =
          Analyzed({options, LeastSubjects(kind, subject), InputsOf(options, subject.config)});
      EXPECT_FALSE(result.numbers.empty() && result.arrays.empty());
      for (const AnalysisNumber& number : result.numbers) {
        EXPECT_TRUE(number.undefined.has_value() || std::isfinite(number.value)) << number.name;
      }
    }
  }
}

}  // namespace
}  // namespace ablate::engine
