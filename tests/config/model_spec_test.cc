// Tests the conversion of the engine's models to specs and back.
#include "server/config/model_spec.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/config/engine_config.h"
#include "server/config/fields.h"

namespace ablate::spec {
namespace {

using engine::ModelConfig;

// Returns a model in which no field has the value of ModelConfig(), nor a default of the spec.
ModelConfig Unusual() {
  ModelConfig model;
  model.vocabulary = 77;
  model.layers = 3;
  model.width = 24;
  model.heads = 6;
  model.context = 40;
  model.positions = engine::Positions::kRotary;
  model.bias = false;
  model.residual = true;
  model.residual_scale = 0.5;
  model.dropout = 0.25;
  model.tied_head = true;
  model.head_bias = false;
  model.attention.kind = engine::AttentionKind::kSigmoid;
  model.attention.causal = false;
  model.attention.score_bias = -2;
  model.attention.kv_heads = 1;
  model.attention.head_size = 6;
  model.attention.qkv_bias = true;
  model.attention.score_cap = 3;
  model.attention.window = 7;
  model.attention.full_every = 2;
  model.attention.value_residual = engine::ValueResidual::kFixed;
  model.activation = engine::Activation::kGeluTanh;
  model.hidden = 100;
  model.norm.kind = engine::NormKind::kRms;
  model.norm.placement = engine::NormPlacement::kSandwich;
  model.norm.attention = false;
  model.norm.feed_forward = false;
  model.norm.final = false;
  model.norm.eps = 1e-3;
  model.norm.gain = false;
  model.norm.bias = true;
  model.norm.backward = engine::NormBackward::kProjected;
  model.norm.gain_form = engine::GainForm::kScale;
  model.init = {engine::InitKind::kGpt2, engine::InitStreams::kSequential,
                engine::InitOutputs::kDeepnorm};
  model.update_gain = engine::UpdateGain::kFeature;
  model.update_gain_start = 0.3;
  model.embedding_scale = 2;
  model.embedding_norm = true;
  model.logit_cap = 9;
  model.base_width = 8;
  model.loss = engine::LossPositions::kLast;
  return model;
}

// Returns the models whose round trips together reach every field.
std::vector<ModelConfig> Models() {
  ModelConfig layer = Unusual();
  layer.norm.kind = engine::NormKind::kLayer;
  layer.norm.bias = false;
  layer.norm.deviation = engine::NormDeviation::kUnbiasedEpsOutside;
  layer.norm.backward = engine::NormBackward::kExact;
  ModelConfig softmax = Unusual();
  softmax.attention = {};
  softmax.attention.kv_heads = 2;
  softmax.attention.sink = true;
  softmax.attention.qk_norm = {engine::QkNormKind::kL2, engine::QkNormScope::kAll,
                               engine::QkNormPlace::kAfter, false, 4};
  softmax.positions = engine::Positions::kRotary;
  softmax.rotary = {500, 0.5, 3};
  softmax.norm.kind = engine::NormKind::kDerf;
  softmax.norm.gain = true;
  softmax.norm.gain_form = engine::GainForm::kOnePlus;
  softmax.norm.attention_alpha = 0.7;
  softmax.norm.alpha = 0.2;
  softmax.tied_head = false;
  softmax.head_bias = true;
  ModelConfig plain = Unusual();
  plain.residual = false;
  plain.residual_scale = 1;  // has no effect
  plain.attention = {};
  plain.attention.kind = engine::AttentionKind::kNone;
  plain.attention.causal = false;
  plain.heads = 1;
  ModelConfig parallel = Unusual();
  parallel.norm.placement = engine::NormPlacement::kPre;
  parallel.norm.feed_forward = true;  // has no effect
  parallel.parallel = parallel.parallel_norms = true;
  return {ModelConfig(), Unusual(), layer, softmax, plain, parallel};
}

TEST(ModelSpecTest, ComesBackWithEveryField) {
  for (const ModelConfig& model : Models()) {
    const v1::ModelSpec spec = ToModelSpec(model);
    SCOPED_TRACE(spec.DebugString());
    const auto back = ToEngineModel(spec, {model.vocabulary, 0, model.loss});
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == model);
    v1::RunSpec run;
    *run.mutable_spec()->mutable_model() = spec;
    run.mutable_spec()->mutable_task()->mutable_text()->set_dataset("a");
    FillFields(run.mutable_spec());
    run.mutable_spec()->mutable_training()->set_device(v1::Device::cpu);
    const auto config = ToEngineConfig(run, {model.vocabulary, 0, model.loss});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->model == model);
  }
}

TEST(ModelSpecTest, HasEveryFieldThatAppliesAndNoOther) {
  for (const ModelConfig& model : Models()) {
    v1::BaseSpec base;
    base.mutable_task()->mutable_text()->set_dataset("a");
    *base.mutable_model() = ToModelSpec(model);
    const std::string before = base.model().SerializeAsString();
    for (const FieldRule& rule : FieldRules()) {
      if (rule.path.rfind("model.", 0) != 0) continue;
      EXPECT_EQ(rule.field.Has(base), rule.Applies(base)) << rule.path;
    }
    FillFields(&base);
    EXPECT_EQ(base.model().SerializeAsString(), before);
  }
}

TEST(ModelSpecTest, IsReadWithDefaultsOfLaterFields) {
  v1::ModelSpec old = ToModelSpec(Unusual());
  old.clear_residual_scale();
  const auto read = ReadStoredModel(old.SerializeAsString());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->residual_scale(), 1);
  EXPECT_EQ(read->layers(), 3u);
  EXPECT_EQ(ReadStoredModel("no message").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ablate::spec
