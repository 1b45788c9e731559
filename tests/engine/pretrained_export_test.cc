// Tests which models are written as GPT-2 files, that reading returns them, and the plain logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/utf8.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "tests/engine/gpt2_files.h"

namespace ablate::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Ne;

// Returns a GPT-2 that no experiment's defaults give.
ModelConfig SmallGpt2() {
  ModelConfig model;
  model.vocabulary = 7;
  model.layers = 3;
  model.width = 6;
  model.heads = 3;
  model.context = 5;
  model.hidden = 10;
  model.dropout = 0.3;
  model.tied_head = true;
  model.head_bias = false;
  model.activation = Activation::kGelu;
  model.norm.eps = 3e-7;
  return model;
}

std::vector<float> Parameters(const ModelConfig& model) {
  std::vector<float> parameters;
  const int64_t size = MakeLayout(model).size;
  for (int64_t i = 0; i < size; ++i) {
    parameters.push_back(std::sin(static_cast<float>(i) * 1.7f) / 3);
  }
  return parameters;
}

struct Change {
  const char* what;
  std::function<void(ModelConfig*)> change;
};

void RemoveNormBias(ModelConfig* model) { model->norm.bias = false; }

void UseRms(ModelConfig* model) {
  model->norm.kind = NormKind::kRms;
  model->norm.bias = false;
}

TEST(WritePretrainedTest, WritesModelsThatReadBackEqual) {
  const Change cases[] = {
      {"plain", [](ModelConfig*) {}},
      {"untied", [](ModelConfig* model) { model->tied_head = false; }},
      {"rms", UseRms},
      {"layer without bias", RemoveNormBias},
      {"no attention norm", [](ModelConfig* model) { model->norm.attention = false; }},
      {"no feed-forward norm", [](ModelConfig* model) { model->norm.feed_forward = false; }},
      {"no final norm", [](ModelConfig* model) { model->norm.final = false; }},
      {"rms, final only",
       [](ModelConfig* model) {
         UseRms(model);
         model->norm.attention = model->norm.feed_forward = false;
       }},
      {"rms nowhere",
       [](ModelConfig* model) {
         UseRms(model);
         model->norm.attention = model->norm.feed_forward = model->norm.final = false;
       }},
      {"placement none", [](ModelConfig* model) { model->norm.placement = NormPlacement::kNone; }},
      {"trained otherwise",
       [](ModelConfig* model) {
         model->norm.backward = NormBackward::kProjected;
         model->init = {InitKind::kXavier, InitStreams::kSequential};
         model->loss = LossPositions::kLast;
         model->activation = Activation::kSilu;
       }},
  };
  for (const auto& [what, change] : cases) {
    SCOPED_TRACE(what);
    ModelConfig model = SmallGpt2();
    change(&model);
    const std::vector<float> parameters = Parameters(model);
    const auto files = WritePretrained(model, parameters);
    ASSERT_TRUE(files.ok()) << files.status();
    const auto imported = ReadFiles(*files);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->model, model);
    EXPECT_EQ(imported->parameters, parameters);
  }
}

TEST(WritePretrainedTest, NamesAnArchitectureOfItsOwnForOtherNorms) {
  const auto type_of = [](const ModelConfig& model) -> nlohmann::json {
    const auto files = WritePretrained(model, Parameters(model));
    EXPECT_TRUE(files.ok()) << files.status();
    const nlohmann::json config = nlohmann::json::parse((*files)[0].bytes);
    return {config.at("model_type"), config.at("architectures").at(0)};
  };
  const nlohmann::json plain = {"gpt2", "GPT2LMHeadModel"};
  const nlohmann::json variant = {"ablate_gpt2", "AblateGPT2LMHeadModel"};
  ModelConfig model = SmallGpt2();
  EXPECT_EQ(type_of(model), plain);
  model.tied_head = false;
  EXPECT_EQ(type_of(model), plain);
  model.norm.feed_forward = false;
  EXPECT_EQ(type_of(model), variant);
  model = SmallGpt2();
  RemoveNormBias(&model);
  EXPECT_EQ(type_of(model), variant);
  model = SmallGpt2();
  UseRms(&model);
  EXPECT_EQ(type_of(model), variant);
}

TEST(WritePretrainedTest, NamesTensorsAsTransformersDoes) {
  ModelConfig model = SmallGpt2();
  model.tied_head = false;
  const auto files = WritePretrained(model, Parameters(model));
  ASSERT_TRUE(files.ok()) << files.status();
  const auto tensors = ParseSafetensors((*files)[1].bytes);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (const char* name : {"transformer.wte.weight", "transformer.h.2.mlp.c_fc.bias",
                           "transformer.ln_f.weight", "lm_head.weight"}) {
    EXPECT_NE(tensors->Find(name), nullptr) << name;
  }
}

TEST(WritePretrainedTest, RefusesModelsThatGpt2Lacks) {
  const struct {
    std::function<void(ModelConfig*)> change;
    const char* message;
  } cases[] = {
      {[](ModelConfig* m) { m->positions = Positions::kSinusoidal; },
       "model.positions: GPT-2 has no such model (sinusoidal); expected learned."},
      {[](ModelConfig* m) { m->bias = false; },
       "model.bias: GPT-2 has no such model (false); expected true."},
      {[](ModelConfig* m) { m->residual = false; },
       "model.residual: GPT-2 has no such model (false); expected true."},
      {[](ModelConfig* m) { m->residual_scale = 1.0000001; },
       "model.residual_scale: GPT-2 has no such model (1.0000001); expected 1."},
      {[](ModelConfig* m) { m->tied_head = false, m->head_bias = true; },
       "model.head_bias: GPT-2 has no such model (true); expected false."},
      {[](ModelConfig* m) { m->attention.kind = AttentionKind::kSigmoid; },
       "model.attention.kind: GPT-2 has no such model (sigmoid); expected softmax."},
      {[](ModelConfig* m) { m->attention.causal = false; },
       "model.attention.causal: GPT-2 has no such model (false); expected true."},
      {[](ModelConfig* m) { m->attention.score_bias = -1; },
       "model.attention.score_bias: GPT-2 has no such model (-1); expected 0."},
      {[](ModelConfig* m) { m->activation = Activation::kSwiglu; },
       "model.feed_forward.activation: GPT-2 has no such model (swiglu); expected gelu_tanh, gelu, "
       "relu or silu."},
      {[](ModelConfig* m) { m->norm.deviation = NormDeviation::kUnbiasedEpsOutside; },
       "model.norm.deviation: GPT-2 has no such model (unbiased_eps_outside); expected "
       "population."},
      {[](ModelConfig* m) { m->norm.gain = false; },
       "model.norm.gain: GPT-2 has no such model (false); expected true."},
      {[](ModelConfig* m) { m->norm.kind = NormKind::kBatch; },
       "model.norm.kind: GPT-2 has no such model (batch); expected layer or rms."},
      {[](ModelConfig* m) { m->norm.kind = NormKind::kRms; },
       "model.norm.bias: GPT-2 has no such model (true with norm kind rms); expected false."},
      {[](ModelConfig* m) { m->norm.placement = NormPlacement::kSandwich; },
       "model.norm.placement: GPT-2 has no such model (sandwich); expected pre or none."},
      {[](ModelConfig* m) { m->norm.eps = 1.5; },
       "model.norm.eps: GPT-2 has no such model (1.5); expected 0 to 1."},
      {[](ModelConfig* m) { m->dropout = 1; },
       "model.dropout: GPT-2 has no such model (1); expected at least 0 and below 1."},
      {[](ModelConfig* m) { m->vocabulary = 0; },
       "model.vocabulary: GPT-2 has no such model (0); expected 1 to 1000000."},
      {[](ModelConfig* m) { m->width = 7; },
       "model.width: GPT-2 has no such model (7); expected a multiple of 3 heads."},
  };
  for (const auto& [change, message] : cases) {
    ModelConfig model = SmallGpt2();
    change(&model);
    EXPECT_EQ(MessageOf(WritePretrained(model, {}).status()), message);
  }
}

TEST(WritePretrainedTest, RefusesParametersThatDoNotFit) {
  const ModelConfig model = SmallGpt2();
  std::vector<float> parameters = Parameters(model);
  EXPECT_EQ(MessageOf(WritePretrained(model, absl::MakeSpan(parameters).subspan(1)).status()),
            absl::StrCat("parameters: there are ", parameters.size() - 1, "; expected ",
                         parameters.size(), " for the model."));
  parameters[1] = INFINITY;
  EXPECT_EQ(MessageOf(WritePretrained(model, parameters).status()),
            "model: tensor 'token_embedding.weight' has inf at element 1; expected finite values.");
}

// Returns a checkpoint of a model that was trained by `rule`.
std::string CheckpointOfRun(const ModelConfig& model, LearningRule rule, TensorType type,
                            absl::string_view parameters) {
  const ParameterLayout layout = MakeLayout(model, rule);
  const std::string buffers(static_cast<size_t>(layout.buffer_size * WidthOf(type)), '\0');
  const BackendIdentity backend = {"torch", "any", "torch_version", "2"};
  return *WriteCheckpoint({model, backend, 9, ""}, layout, {type, parameters, buffers, {}});
}

template <typename Number>
absl::string_view BytesOfNumbers(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

TEST(ExportCheckpointTest, WritesTheParametersOfARun) {
  const ModelConfig model = SmallGpt2();
  const std::vector<float> parameters = Parameters(model);
  for (const LearningRule rule : {LearningRule::kBackprop, LearningRule::kFeedbackAlignment}) {
    const std::string checkpoint =
        CheckpointOfRun(model, rule, TensorType::kF32, BytesOfNumbers(parameters));
    const auto files = ExportCheckpoint(model, rule, checkpoint);
    ASSERT_TRUE(files.ok()) << files.status();
    const auto imported = ReadFiles(*files);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->model, model);
    EXPECT_EQ(imported->parameters, parameters);
  }
}

TEST(ExportCheckpointTest, RoundsFloat64ToNearest) {
  const ModelConfig model = SmallGpt2();
  std::vector<double> parameters(static_cast<size_t>(MakeLayout(model).size), 0.1);
  const auto exported = [&] {
    return ExportCheckpoint(model, LearningRule::kBackprop,
                            CheckpointOfRun(model, LearningRule::kBackprop, TensorType::kF64,
                                            BytesOfNumbers(parameters)));
  };
  ASSERT_TRUE(exported().ok()) << exported().status();
  EXPECT_EQ(ReadFiles(*exported())->parameters.front(), 0.1f);
  parameters[2] = 1e39;
  EXPECT_EQ(MessageOf(exported().status()),
            "checkpoint: tensor 'token_embedding.weight' has 1e+39 at element 2; expected values "
            "that float32 can hold.");
}

TEST(ExportCheckpointTest, RefusesAnotherModelsCheckpoint) {
  const ModelConfig model = SmallGpt2();
  const std::string checkpoint = CheckpointOfRun(model, LearningRule::kBackprop, TensorType::kF32,
                                                 BytesOfNumbers(Parameters(model)));
  ModelConfig other = model;
  other.hidden = 11;
  EXPECT_THAT(MessageOf(ExportCheckpoint(other, LearningRule::kBackprop, checkpoint).status()),
              HasSubstr("checkpoint: "));
  other.positions = Positions::kNone;
  EXPECT_THAT(MessageOf(ExportCheckpoint(other, LearningRule::kBackprop, checkpoint).status()),
              HasSubstr("model.positions: "));
}

absl::StatusOr<std::vector<double>> LogitsOf(const StoredModel& model,
                                             const std::vector<int64_t>& tokens,
                                             LogitPositions positions = LogitPositions::kAll) {
  return PlainLogits(MustRead(model), tokens, positions);
}

// The logits of blocks that add nothing are those of the normed embeddings.
TEST(PlainLogitsTest, MatchAClosedForm) {
  StoredModel stored = TinyGpt2();
  for (auto& [name, tensor] : stored.tensors) {
    if (name.find("c_proj") != std::string::npos) {
      std::fill(tensor.bytes.begin(), tensor.bytes.end(), '\0');
    }
  }
  const auto values = [&](const std::string& name) {
    return FloatsOf(stored.tensors.at("transformer." + name));
  };
  const std::vector<float> wte = values("wte.weight"), wpe = values("wpe.weight"),
                           gain = values("ln_f.weight"), shift = values("ln_f.bias");
  const std::vector<int64_t> tokens = {3, 0, 3};
  const auto logits = LogitsOf(stored, tokens);
  ASSERT_TRUE(logits.ok()) << logits.status();
  ASSERT_EQ(logits->size(), 15u);
  for (size_t t = 0; t < 3; ++t) {
    double x[4], mean = 0, variance = 0;
    for (size_t j = 0; j < 4; ++j) {
      x[j] = double{wte[static_cast<size_t>(tokens[t]) * 4 + j]} + double{wpe[t * 4 + j]};
      mean += x[j] / 4;
    }
    for (const double value : x) variance += (value - mean) * (value - mean) / 4;
    for (size_t token = 0; token < 5; ++token) {
      double logit = 0;
      for (size_t j = 0; j < 4; ++j) {
        logit += ((x[j] - mean) / std::sqrt(variance + 1e-5) * double{gain[j]} + double{shift[j]}) *
                 double{wte[token * 4 + j]};
      }
      EXPECT_NEAR((*logits)[t * 5 + token], logit, 1e-14);
    }
  }
}

TEST(PlainLogitsTest, TakeSubnormalNumbersAs0) {
  StoredModel stored = TinyGpt2();
  const auto fill = [&](float value) {
    StoredTensor& tensor = stored.tensors.at("transformer.wte.weight");
    const std::vector<float> values(tensor.bytes.size() / sizeof(float), value);
    tensor.bytes = std::string(BytesOfNumbers(values));
    return *LogitsOf(stored, {1, 4, 2});
  };
  EXPECT_THAT(fill(2e-38F), Each(Ne(0)));
  EXPECT_THAT(fill(1e-40F), Each(0));
}

TEST(PlainLogitsTest, ReturnTheLastPositionAlone) {
  const auto all = LogitsOf(TinyGpt2(), {1, 4, 2});
  const auto last = LogitsOf(TinyGpt2(), {1, 4, 2}, LogitPositions::kLast);
  ASSERT_TRUE(all.ok() && last.ok());
  EXPECT_EQ(*last, std::vector<double>(all->begin() + 10, all->end()));
}

TEST(PlainLogitsTest, RefuseTokensOutsideTheModel) {
  EXPECT_EQ(MessageOf(LogitsOf(TinyGpt2(), {}).status()), "tokens: there are 0; expected 1 to 6.");
  EXPECT_EQ(MessageOf(LogitsOf(TinyGpt2(), {1, 1, 1, 1, 1, 1, 1}).status()),
            "tokens: there are 7; expected 1 to 6.");
  for (const int64_t token : {-1, 5}) {
    EXPECT_EQ(MessageOf(LogitsOf(TinyGpt2(), {token}).status()),
              absl::StrCat("tokens: ", token, " is outside the vocabulary; expected 0 to 4."));
  }
}

// The bounds of safetensors files must not refuse a file of ours.
TEST(CheckpointTest, HoldsTheMostTensorsAndTheLongestVocabulary) {
  ModelConfig model;
  model.vocabulary = 2;
  model.layers = 200;
  model.width = 1;
  model.heads = 1;
  model.context = 1;
  model.hidden = 1;
  model.norm.kind = NormKind::kBatch;
  model.norm.placement = NormPlacement::kSandwich;
  std::string characters = "{\"characters\":[\"a\"";
  for (char32_t point = 0x10000; point < 0x110000; ++point) {
    absl::StrAppend(&characters, ",\"", text::EncodeUtf8(point), "\"");
  }
  characters += "]}";
  const ParameterLayout layout = MakeLayout(model, LearningRule::kFeedbackAlignment);
  const std::string parameters(static_cast<size_t>(layout.size) * 4, '\0');
  const std::string buffers(static_cast<size_t>(layout.buffer_size) * 4, '\0');
  const BackendIdentity backend = {"torch", "any", "torch_version", "2"};
  const auto file = WriteCheckpoint({model, backend, 9, characters}, layout,
                                    {TensorType::kF32, parameters, buffers, {}});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_GT(layout.parameters.size() + layout.buffers.size(), 5000u);
  EXPECT_TRUE(ReadCheckpoint(layout, *file).ok()) << ReadCheckpoint(layout, *file).status();
}

}  // namespace
}  // namespace ablate::engine
