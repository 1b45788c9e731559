// Tests parameter counts of the source experiments, names, order and the effect of every switch.
#include "server/engine/core/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/docs_page.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// A small language model of names.
ModelConfig NamesModel() {
  ModelConfig model;
  model.vocabulary = 27;
  model.layers = 8;
  model.width = 16;
  model.heads = 4;
  model.context = 16;
  model.hidden = 64;
  model.bias = false;
  model.head_bias = false;
  model.activation = Activation::kRelu;
  model.norm.kind = NormKind::kRms;
  model.norm.bias = false;
  return model;
}

// The model of the task legacy_recall.
ModelConfig RecallModel() {
  ModelConfig model;
  model.vocabulary = 402;
  model.layers = 1;
  model.width = 128;
  model.heads = 1;
  model.context = 41;
  model.hidden = 512;
  model.positions = Positions::kNone;
  model.attention.causal = false;
  model.norm.placement = NormPlacement::kPost;
  model.norm.final = false;
  model.loss = LossPositions::kLast;
  return model;
}

std::vector<std::string> Names(const ParameterLayout& layout) {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : layout.parameters) names.push_back(parameter.name);
  return names;
}

TEST(LayoutTest, CountsMatchTheNamesExperiment) {
  ModelConfig model = NamesModel();
  EXPECT_EQ(MakeLayout(model).size, 25968);
  model.norm.final = false;
  model.norm.placement = NormPlacement::kPost;
  EXPECT_EQ(MakeLayout(model).size, 25952);
  model.norm.placement = NormPlacement::kNone;
  EXPECT_EQ(MakeLayout(model).size, 25696);
}

// Returns a model's parameter by name.
const ParameterInfo& Find(const ParameterLayout& layout, const std::string& name) {
  const auto found = std::find_if(layout.parameters.begin(), layout.parameters.end(),
                                  [&](const ParameterInfo& one) { return one.name == name; });
  EXPECT_NE(found, layout.parameters.end()) << name;
  return *found;
}

TEST(LayoutTest, SaysWhatEachParameterIs) {
  ModelConfig model = NamesModel();
  model.bias = model.head_bias = model.norm.bias = true;
  const ParameterLayout layout = MakeLayout(model);
  const struct {
    const char* name;
    ParameterRole role;
    Module module;
    int block;
    int64_t fan_in, fan_out;
  } cases[] = {
      {"token_embedding.weight", ParameterRole::kEmbedding, Module::kTokenEmbedding, -1, 0, 0},
      {"position_embedding.weight", ParameterRole::kPosition, Module::kPositionEmbedding, -1, 0, 0},
      {"block.0.attention.norm.weight", ParameterRole::kGain, Module::kAttentionNorm, 0, 0, 0},
      {"block.0.attention.norm.bias", ParameterRole::kBias, Module::kAttentionNorm, 0, 0, 0},
      {"block.7.attention.qkv.weight", ParameterRole::kWeight, Module::kQkv, 7, 16, 48},
      {"block.7.attention.qkv.bias", ParameterRole::kBias, Module::kQkv, 7, 16, 48},
      {"block.3.feed_forward.up.bias", ParameterRole::kBias, Module::kUp, 3, 16, 64},
      {"block.3.feed_forward.down.weight", ParameterRole::kWeight, Module::kDown, 3, 64, 16},
      {"final_norm.weight", ParameterRole::kGain, Module::kFinalNorm, -1, 0, 0},
      {"head.weight", ParameterRole::kHead, Module::kHead, -1, 16, 27},
      {"head.bias", ParameterRole::kBias, Module::kHead, -1, 16, 27},
  };
  for (const auto& item : cases) {
    const ParameterInfo& parameter = Find(layout, item.name);
    EXPECT_EQ(parameter.role, item.role) << item.name;
    EXPECT_EQ(parameter.module, item.module) << item.name;
    EXPECT_EQ(parameter.block, item.block) << item.name;
    EXPECT_EQ(parameter.fan_in, item.fan_in) << item.name;
    EXPECT_EQ(parameter.fan_out, item.fan_out) << item.name;
  }
  EXPECT_TRUE(layout.buffers.empty());
}

TEST(LayoutTest, CountsMatchTheOneLayerNamesExperiment) {
  ModelConfig model = NamesModel();
  model.layers = 1;
  EXPECT_EQ(MakeLayout(model).size, 4240);
  model.norm.kind = NormKind::kLayer;
  model.norm.bias = true;
  EXPECT_EQ(MakeLayout(model).size, 4288);
}

TEST(LayoutTest, CountsMatchTheRecallExperiment) {
  ModelConfig model = RecallModel();
  EXPECT_EQ(MakeLayout(model).size, 301586);
  model.norm.placement = NormPlacement::kNone;
  EXPECT_EQ(MakeLayout(model).size, 301074);
}

// Expects the name and shape of `info` among the page's rows; the model's sizes all differ.
template <typename Info>
void ExpectOnPage(const ModelConfig& model, const Info& info) {
  std::vector<std::string> shape;
  for (const int64_t extent : info.shape) {
    shape.push_back(extent == model.vocabulary ? "V"
                    : extent == model.context  ? "T"
                    : extent == model.hidden   ? "h"
                    : extent == model.width    ? "d"
                    : extent == 22             ? "H·e"
                                               : "(H + 2K)·e");
  }
  ExpectRow("model.md",
            absl::StrCat("`", absl::StrReplaceAll(info.name, {{"block.0.", "block.{i}."}}), "`"),
            absl::StrCat("[", absl::StrJoin(shape, ", "), "]"));
}

TEST(LayoutTest, IsThatOfThePage) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 1;
  model.width = 6;
  model.heads = 2;
  model.attention.head_size = 11;
  model.context = 7;
  model.hidden = 8;
  model.norm.placement = NormPlacement::kSandwich;
  for (const LearningRule rule : {LearningRule::kBackprop, LearningRule::kFeedbackAlignment,
                                  LearningRule::kDirectFeedbackAlignment}) {
    const ParameterLayout layout = MakeLayout(model, rule);
    for (const ParameterInfo& parameter : layout.parameters) ExpectOnPage(model, parameter);
    for (const BufferInfo& buffer : layout.buffers) ExpectOnPage(model, buffer);
  }
}

TEST(LayoutTest, ListsEveryParameterInOrderWhenAllSwitchesAreOn) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 2;
  const std::vector<std::string> in_block = {
      "attention.norm.weight",    "attention.norm.bias",         "attention.qkv.weight",
      "attention.qkv.bias",       "attention.projection.weight", "attention.projection.bias",
      "feed_forward.norm.weight", "feed_forward.norm.bias",      "feed_forward.up.weight",
      "feed_forward.up.bias",     "feed_forward.down.weight",    "feed_forward.down.bias"};
  std::vector<std::string> expected = {"token_embedding.weight", "position_embedding.weight"};
  for (const char* block : {"block.0.", "block.1."}) {
    for (const std::string& name : in_block) expected.push_back(block + name);
  }
  for (const char* name : {"final_norm.weight", "final_norm.bias", "head.weight", "head.bias"}) {
    expected.push_back(name);
  }
  EXPECT_THAT(Names(MakeLayout(model)), ElementsAreArray(expected));
}

TEST(LayoutTest, ShapesAreOutByIn) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 1;
  model.width = 4;
  model.hidden = 7;
  model.context = 3;
  model.norm.placement = NormPlacement::kNone;
  model.norm.final = false;
  std::vector<std::vector<int64_t>> shapes;
  for (const ParameterInfo& parameter : MakeLayout(model).parameters) {
    shapes.push_back(parameter.shape);
  }
  EXPECT_THAT(shapes,
              ElementsAre(ElementsAre(5, 4), ElementsAre(3, 4),                    // embeddings
                          ElementsAre(12, 4), ElementsAre(12), ElementsAre(4, 4),  // attention
                          ElementsAre(4), ElementsAre(7, 4), ElementsAre(7),       // feed-forward
                          ElementsAre(4, 7), ElementsAre(4), ElementsAre(5, 4),    // … and head
                          ElementsAre(5)));
}

TEST(LayoutTest, OffsetsAreContiguous) {
  for (const ModelConfig& model : {NamesModel(), RecallModel()}) {
    const ParameterLayout layout = MakeLayout(model);
    int64_t next = 0;
    for (const ParameterInfo& parameter : layout.parameters) {
      int64_t size = 1;
      for (const int64_t extent : parameter.shape) size *= extent;
      EXPECT_EQ(parameter.size, size) << parameter.name;
      EXPECT_EQ(parameter.offset, next) << parameter.name;
      next += size;
    }
    EXPECT_EQ(layout.size, next);
  }
}

OptimizerConfig DecayOn(WeightDecayOn parameters) {
  OptimizerConfig optimizer;
  optimizer.weight_decay_on = parameters;
  return optimizer;
}

TEST(UpdateRangesTest, LeaveOutBiasesAndGains) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 1;
  const ParameterLayout layout = MakeLayout(model);
  const auto names = [&](bool decay) {
    std::vector<std::string> found;
    for (const ParameterRange& range : UpdateRanges(layout, DecayOn(WeightDecayOn::kMatrices))) {
      for (const ParameterInfo& parameter : layout.parameters) {
        const bool inside = parameter.offset >= range.offset &&
                            parameter.offset + parameter.size <= range.offset + range.size;
        if (inside && range.decays == decay) found.push_back(parameter.name);
      }
    }
    return found;
  };
  EXPECT_THAT(names(true),
              ElementsAre("token_embedding.weight", "position_embedding.weight",
                          "block.0.attention.qkv.weight", "block.0.attention.projection.weight",
                          "block.0.feed_forward.up.weight", "block.0.feed_forward.down.weight",
                          "head.weight"));
  EXPECT_EQ(names(true).size() + names(false).size(), layout.parameters.size());
}

TEST(UpdateRangesTest, JoinNeighboursThatDecayAlike) {
  const ParameterLayout layout = MakeLayout(NamesModel());
  const std::vector<ParameterRange> all = UpdateRanges(layout, DecayOn(WeightDecayOn::kAll));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].offset, 0);
  EXPECT_EQ(all[0].size, layout.size);
  EXPECT_TRUE(all[0].decays);
  // Ranges: the embeddings; in each block a gain before each of two pairs of linears; a gain before
  // the head.
  const std::vector<ParameterRange> some = UpdateRanges(layout, DecayOn(WeightDecayOn::kMatrices));
  ASSERT_EQ(some.size(), 1 + 8 * 4 + 2u);
  int64_t next = 0;
  for (const ParameterRange& range : some) {
    EXPECT_EQ(range.offset, next);
    next += range.size;
  }
  EXPECT_EQ(next, layout.size);
}

TEST(UpdateRangesTest, HaveTheRateOfTheirGroup) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 1;
  const ParameterLayout layout = MakeLayout(model);
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerKind::kMuon;
  optimizer.rates = {2, 3, 4};
  int64_t next = 0;
  std::vector<double> rates;
  for (const ParameterRange& range : UpdateRanges(layout, optimizer)) {
    EXPECT_EQ(range.offset, next);
    next += range.size;
    rates.push_back(range.rate);
    EXPECT_EQ(range.orthogonalised, range.rate == 1);
  }
  EXPECT_EQ(next, layout.size);
  // Embeddings; norm, qkv, its bias, projection, its bias and norm, up, its bias, down; its bias
  // and the last norm; head; its bias.
  EXPECT_THAT(rates, ElementsAre(2, 4, 1, 4, 1, 4, 1, 4, 1, 4, 3, 4));
}

TEST(LayoutTest, SizesTheLinearsByTheFeaturesOfAHead) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 1;
  model.width = 12;
  model.heads = 4;
  model.bias = false;
  model.attention.kv_heads = 2;
  model.attention.head_size = 5;
  model.attention.qkv_bias = true;
  model.attention.qk_norm = {QkNormKind::kRms, QkNormScope::kAll};
  model.parallel = model.parallel_norms = true;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const ParameterInfo& parameter : MakeLayout(model).parameters) {
    shapes[parameter.name] = parameter.shape;
  }
  EXPECT_THAT(shapes["block.0.attention.qkv.weight"], ElementsAre(40, 12));
  EXPECT_THAT(shapes["block.0.attention.qkv.bias"], ElementsAre(40));
  EXPECT_THAT(shapes["block.0.attention.query_norm.weight"], ElementsAre(20));
  EXPECT_THAT(shapes["block.0.attention.key_norm.weight"], ElementsAre(10));
  EXPECT_THAT(shapes["block.0.attention.projection.weight"], ElementsAre(12, 20));
  EXPECT_THAT(shapes["block.0.feed_forward.norm.weight"], ElementsAre(12));
  EXPECT_EQ(shapes.count("block.0.attention.projection.bias"), 0u);
  model.norm.attention = false;
  for (const ParameterInfo& parameter : MakeLayout(model).parameters) {
    EXPECT_NE(parameter.module, Module::kFeedForwardNorm) << parameter.name;
  }
}

TEST(BlockMatricesTest, TakesStackedLinearsApart) {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 2;
  model.width = 12;
  model.heads = 4;
  model.hidden = 20;
  model.attention.kv_heads = 2;
  model.activation = Activation::kSwiglu;
  const ParameterLayout layout = MakeLayout(model);
  std::vector<std::vector<int64_t>> shapes;
  int64_t elements = 0;
  for (const MatrixView& matrix : BlockMatrices(model, layout)) {
    shapes.push_back({matrix.rows, matrix.columns});
    elements += matrix.rows * matrix.columns;
  }
  ASSERT_EQ(shapes.size(), 14u);
  shapes.resize(7);
  EXPECT_EQ(shapes, (std::vector<std::vector<int64_t>>{
                        {12, 12}, {6, 12}, {6, 12}, {12, 12}, {20, 12}, {20, 12}, {12, 20}}));
  int64_t expected = 0;
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.role == ParameterRole::kWeight) expected += parameter.size;
  }
  EXPECT_EQ(elements, expected);
}

// Parameters of the default model that disappear or stay when one switch changes.
struct SwitchCase {
  const char* what;
  std::function<void(ModelConfig&)> change;
  std::vector<std::string> gone;
};

TEST(LayoutTest, EachSwitchRemovesItsOwnParametersOnly) {
  const SwitchCase cases[] = {
      {"positions",
       [](ModelConfig& m) { m.positions = Positions::kNone; },
       {"position_embedding.weight"}},
      {"bias",
       [](ModelConfig& m) { m.bias = false; },
       {"block.0.attention.qkv.bias", "block.0.attention.projection.bias",
        "block.0.feed_forward.up.bias", "block.0.feed_forward.down.bias"}},
      {"tied_head", [](ModelConfig& m) { m.tied_head = true; }, {"head.weight"}},
      {"head_bias", [](ModelConfig& m) { m.head_bias = false; }, {"head.bias"}},
      {"norm.attention",
       [](ModelConfig& m) { m.norm.attention = false; },
       {"block.0.attention.norm.weight", "block.0.attention.norm.bias"}},
      {"norm.feed_forward",
       [](ModelConfig& m) { m.norm.feed_forward = false; },
       {"block.0.feed_forward.norm.weight", "block.0.feed_forward.norm.bias"}},
      {"norm.final",
       [](ModelConfig& m) { m.norm.final = false; },
       {"final_norm.weight", "final_norm.bias"}},
      {"norm.placement none",
       [](ModelConfig& m) { m.norm.placement = NormPlacement::kNone; },
       {"block.0.attention.norm.weight", "block.0.attention.norm.bias",
        "block.0.feed_forward.norm.weight", "block.0.feed_forward.norm.bias"}},
      {"norm.gain",
       [](ModelConfig& m) { m.norm.gain = false; },
       {"block.0.attention.norm.weight", "block.0.feed_forward.norm.weight", "final_norm.weight"}},
      {"norm.bias",
       [](ModelConfig& m) { m.norm.bias = false; },
       {"block.0.attention.norm.bias", "block.0.feed_forward.norm.bias", "final_norm.bias"}},
      {"norm.placement post", [](ModelConfig& m) { m.norm.placement = NormPlacement::kPost; }, {}},
      {"norm.kind", [](ModelConfig& m) { m.norm.kind = NormKind::kRms; }, {}},
      {"residual", [](ModelConfig& m) { m.residual = false; }, {}},
  };
  ModelConfig base;
  base.vocabulary = 5;
  base.layers = 1;
  for (const SwitchCase& item : cases) {
    ModelConfig model = base;
    item.change(model);
    std::vector<std::string> expected;
    for (const std::string& name : Names(MakeLayout(base))) {
      if (std::find(item.gone.begin(), item.gone.end(), name) == item.gone.end()) {
        expected.push_back(name);
      }
    }
    EXPECT_EQ(expected.size() + item.gone.size(), MakeLayout(base).parameters.size()) << item.what;
    EXPECT_THAT(Names(MakeLayout(model)), ElementsAreArray(expected)) << item.what;
  }
}

}  // namespace
}  // namespace ablate::engine
