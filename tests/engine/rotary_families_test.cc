// Tests how the files of Llama, Qwen2, Qwen3 and GPT-NeoX are read and written: settings, the order
// of rows, and what is refused. tests/parity/families.py compares the values with transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/layout.h"
#include "tests/engine/gpt2_files.h"

namespace ablate::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kTypes[] = {"llama", "qwen2", "qwen3", "gpt_neox"};

// Adds tensors of distinct numbers to a model.
class Adder {
 public:
  explicit Adder(StoredModel* model) : model_(model) {}

  void Add(const std::string& name, std::vector<int64_t> shape) {
    const int seed = static_cast<int>(model_->tensors.size()) + 1;
    model_->tensors[name] = Numbers(std::move(shape), seed);
  }
  void Linear(const std::string& name, int64_t out, int64_t in, bool bias) {
    Add(name + ".weight", {out, in});
    if (bias) Add(name + ".bias", {out});
  }

 private:
  StoredModel* model_;
};

void AddNeoxBlock(const std::string& layer, Adder add) {
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
    add.Add(layer + norm + ".weight", {16});
    add.Add(layer + norm + ".bias", {16});
  }
  add.Linear(layer + "attention.query_key_value", 48, 16, true);
  add.Linear(layer + "attention.dense", 16, 16, true);
  add.Linear(layer + "mlp.dense_h_to_4h", 10, 16, true);
  add.Linear(layer + "mlp.dense_4h_to_h", 16, 10, true);
}

void AddLlamaBlock(const std::string& layer, int64_t head, bool qkv_bias, bool head_norms,
                   Adder add) {
  add.Add(layer + "input_layernorm.weight", {16});
  add.Add(layer + "post_attention_layernorm.weight", {16});
  add.Linear(layer + "self_attn.q_proj", 4 * head, 16, qkv_bias);
  add.Linear(layer + "self_attn.k_proj", 2 * head, 16, qkv_bias);
  add.Linear(layer + "self_attn.v_proj", 2 * head, 16, qkv_bias);
  add.Linear(layer + "self_attn.o_proj", 16, 4 * head, false);
  if (head_norms) {
    add.Add(layer + "self_attn.q_norm.weight", {head});
    add.Add(layer + "self_attn.k_norm.weight", {head});
  }
  add.Linear(layer + "mlp.gate_proj", 10, 16, false);
  add.Linear(layer + "mlp.up_proj", 10, 16, false);
  add.Linear(layer + "mlp.down_proj", 16, 10, false);
}

// Returns a model with vocabulary 7, context 8, width 16, 4 heads, 2 layers and 10 hidden features.
// All but GPT-NeoX have 2 heads of keys; those of Qwen3 have 6 features.
StoredModel Tiny(const std::string& type) {
  const bool neox = type == "gpt_neox", qwen3 = type == "qwen3";
  StoredModel model;
  model.config = {{"model_type", type},       {"vocab_size", 7},
                  {"hidden_size", 16},        {"num_hidden_layers", 2},
                  {"num_attention_heads", 4}, {"max_position_embeddings", 8},
                  {"intermediate_size", 10}};
  if (!neox) model.config["num_key_value_heads"] = 2;
  if (qwen3) model.config["head_dim"] = 6;
  if (neox) model.config["rotary_pct"] = 0.5;
  Adder add(&model);
  const std::string prefix = neox ? "gpt_neox." : "model.";
  add.Add(prefix + (neox ? "embed_in.weight" : "embed_tokens.weight"), {7, 16});
  for (int block = 0; block < 2; ++block) {
    const std::string layer = absl::StrCat(prefix, "layers.", block, ".");
    if (neox) {
      AddNeoxBlock(layer, add);
    } else {
      AddLlamaBlock(layer, qwen3 ? 6 : 4, type == "qwen2", qwen3, add);
    }
  }
  add.Add(prefix + (neox ? "final_layer_norm" : "norm") + ".weight", {16});
  if (neox) add.Add("gpt_neox.final_layer_norm.bias", {16});
  add.Add(neox ? "embed_out.weight" : "lm_head.weight", {7, 16});
  return model;
}

// Returns a parameter's elements.
std::vector<float> ValuesOf(const ImportedModel& imported, const std::string& name) {
  for (const ParameterInfo& parameter : MakeLayout(imported.model).parameters) {
    if (parameter.name != name) continue;
    const auto begin = imported.parameters.begin() + parameter.offset;
    return {begin, begin + parameter.size};
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(RotaryFamiliesTest, ReadsTheSettings) {
  const ModelConfig llama = MustRead(Tiny("llama")).model;
  EXPECT_EQ(llama.positions, Positions::kRotary);
  EXPECT_EQ(llama.vocabulary, 7);
  EXPECT_EQ(llama.context, 8);
  EXPECT_EQ(llama.hidden, 10);
  EXPECT_EQ(llama.activation, Activation::kSwiglu);
  EXPECT_EQ(llama.norm.kind, NormKind::kRms);
  EXPECT_EQ(llama.norm.eps, 1e-6);
  EXPECT_EQ(llama.attention.kv_heads, 2);
  EXPECT_EQ(llama.attention.head_size, 0);
  EXPECT_FALSE(llama.bias || llama.attention.qkv_bias || llama.tied_head || llama.parallel);
  const ModelConfig qwen2 = MustRead(Tiny("qwen2")).model;
  EXPECT_TRUE(qwen2.attention.qkv_bias && !qwen2.bias);
  const ModelConfig qwen3 = MustRead(Tiny("qwen3")).model;
  EXPECT_EQ(qwen3.attention.head_size, 6);
  EXPECT_EQ(qwen3.attention.qk_norm.kind, QkNormKind::kRms);
  EXPECT_EQ(qwen3.attention.qk_norm.scale, 1 / std::sqrt(6.0));
  const ModelConfig neox = MustRead(Tiny("gpt_neox")).model;
  EXPECT_TRUE(neox.parallel && neox.parallel_norms && neox.bias && neox.norm.bias);
  EXPECT_EQ(neox.rotary.share, 0.5);
  EXPECT_EQ(neox.activation, Activation::kGelu);
  for (const char* type : kTypes) EXPECT_EQ(MustRead(Tiny(type)).family, type);
}

TEST(RotaryFamiliesTest, ReadsBothFormsOfRotaryPositions) {
  for (const char* type : kTypes) {
    const bool neox = std::string(type) == "gpt_neox";
    StoredModel older = Tiny(type), newer = Tiny(type);
    older.config[neox ? "rotary_emb_base" : "rope_theta"] = 500;
    older.config["rope_scaling"] = nullptr;
    newer.config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500.0}};
    EXPECT_EQ(MustRead(older).model.rotary.theta, 500) << type;
    EXPECT_EQ(MustRead(older).model, MustRead(newer).model) << type;
  }
}

TEST(RotaryFamiliesTest, StacksQueriesKeysAndValues) {
  const StoredModel llama = Tiny("llama");
  std::vector<float> expected;
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const auto part =
        FloatsOf(llama.tensors.at(absl::StrCat("model.layers.1.self_attn.", name, ".weight")));
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(ValuesOf(MustRead(llama), "block.1.attention.qkv.weight"), expected);
  // GPT-NeoX has queries, keys and values of a head together: row (3·head + part)·4 + feature.
  const StoredModel neox = Tiny("gpt_neox");
  const auto stored = FloatsOf(neox.tensors.at("gpt_neox.layers.0.attention.query_key_value.bias"));
  const auto read = ValuesOf(MustRead(neox), "block.0.attention.qkv.bias");
  for (size_t part = 0; part < 3; ++part) {
    for (size_t head = 0; head < 4; ++head) {
      for (size_t j = 0; j < 4; ++j) {
        EXPECT_EQ(read[(part * 4 + head) * 4 + j], stored[(head * 3 + part) * 4 + j]);
      }
    }
  }
}

TEST(RotaryFamiliesTest, StacksGatesBeforeValues) {
  const StoredModel llama = Tiny("llama");
  auto expected = FloatsOf(llama.tensors.at("model.layers.0.mlp.gate_proj.weight"));
  const auto values = FloatsOf(llama.tensors.at("model.layers.0.mlp.up_proj.weight"));
  expected.insert(expected.end(), values.begin(), values.end());
  EXPECT_EQ(ValuesOf(MustRead(llama), "block.0.feed_forward.up.weight"), expected);
}

TEST(RotaryFamiliesTest, ShortensALongContext) {
  StoredModel model = Tiny("qwen2");
  model.config["max_position_embeddings"] = 131072;
  const ImportedModel imported = MustRead(model);
  EXPECT_EQ(imported.model.context, 8192);
  EXPECT_THAT(imported.notes, Contains("model.context is 8192; the files allow 131,072."));
}

TEST(RotaryFamiliesTest, IgnoresConstantsOfOldFiles) {
  StoredModel llama = Tiny("llama"), neox = Tiny("gpt_neox");
  llama.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = Numbers({2}, 1);
  neox.tensors["gpt_neox.layers.1.attention.bias"] = Numbers({1, 1, 8, 8}, 1);
  neox.tensors["gpt_neox.layers.1.attention.masked_bias"] = Numbers({}, 1);
  EXPECT_TRUE(ReadModel(llama).ok()) << ReadModel(llama).status();
  EXPECT_TRUE(ReadModel(neox).ok()) << ReadModel(neox).status();
}

TEST(RotaryFamiliesTest, ReadsATiedHead) {
  for (const char* type : kTypes) {
    StoredModel model = Tiny(type);
    model.config["tie_word_embeddings"] = true;
    std::erase_if(model.tensors, [](const auto& named) {
      return named.first == "lm_head.weight" || named.first == "embed_out.weight";
    });
    EXPECT_TRUE(MustRead(model).model.tied_head) << type;
  }
}

TEST(RotaryFamiliesTest, WritesFilesThatReadBackEqual) {
  for (const char* type : kTypes) {
    ImportedModel imported = MustRead(Tiny(type));
    imported.model.dropout = 0.3;
    imported.model.norm.backward = NormBackward::kProjected;
    imported.model.init = {InitKind::kXavier, InitStreams::kSequential, InitOutputs::kZero};
    imported.model.loss = LossPositions::kLast;
    const auto files = WritePretrained(imported.model, imported.parameters);
    ASSERT_TRUE(files.ok()) << type << files.status();
    const auto again = ReadFiles(*files);
    ASSERT_TRUE(again.ok()) << type << again.status();
    EXPECT_EQ(again->family, type);
    EXPECT_EQ(again->model, imported.model) << type;
    EXPECT_EQ(again->parameters, imported.parameters) << type;
    const auto tensors = ParseSafetensors((*files)[1].bytes);
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    for (const auto& [name, tensor] : Tiny(type).tensors) {
      const TensorView* const written = tensors->Find(name);
      ASSERT_NE(written, nullptr) << name;
      EXPECT_EQ(written->shape, tensor.shape) << name;
      EXPECT_EQ(written->bytes, tensor.bytes) << name;
    }
  }
}

TEST(RotaryFamiliesTest, NamesTheFieldThatNoFamilyHas) {
  const struct {
    const char* type;
    std::function<void(ModelConfig*)> change;
    const char* message;
  } cases[] = {
      {"llama", [](ModelConfig* m) { m->norm.placement = NormPlacement::kPost; },
       "model.norm.placement: Llama has no such model (post); expected pre."},
      {"llama", [](ModelConfig* m) { m->activation = Activation::kRelu2; },
       "model.feed_forward.activation: Llama has no such model (relu2); expected swiglu, geglu or "
       "reglu."},
      {"qwen2", [](ModelConfig* m) { m->attention.window = 4; },
       "model.attention.window: Qwen2 has no such model (4); expected 0."},
      {"qwen3", [](ModelConfig* m) { m->attention.qk_norm.scale = 1; },
       "model.attention.qk_norm.scale: Qwen3 has no such model (1); expected 0.4082482904638631."},
      {"gpt_neox", [](ModelConfig* m) { m->parallel_norms = false; },
       "model.parallel_norms: GPT-NeoX has no such model (false with parallel true); expected "
       "true."},
      {"gpt_neox", [](ModelConfig* m) { m->attention.kv_heads = 2; },
       "model.attention.kv_heads: GPT-NeoX has no such model (2); expected 0."},
  };
  for (const auto& [type, change, message] : cases) {
    ModelConfig model = MustRead(Tiny(type)).model;
    change(&model);
    EXPECT_EQ(MessageOf(WritePretrained(model, {}).status()), message);
  }
}

TEST(RotaryFamiliesTest, RefusesSettingsThatItCannotRead) {
  const struct {
    const char* type;
    const char* key;
    nlohmann::json value;
    const char* message;  // after "config.json: "
  } cases[] = {
      {"llama", "hidden_act", "tanh",
       "hidden_act is 'tanh'; expected one of silu, swish, gelu, relu."},
      {"llama",
       "rope_scaling",
       {{"type", "linear"}, {"factor", 2.0}},
       "rope_scaling.type is 'linear'; expected 'default': no scaling of positions."},
      {"llama",
       "rope_parameters",
       {{"rope_type", "llama3"}, {"rope_theta", 500000.0}},
       "rope_parameters.rope_type is 'llama3'; expected 'default': no scaling of positions."},
      {"llama", "rope_parameters", 3,
       "rope_parameters is 3; expected an object of numbers and names."},
      {"llama",
       "rope_parameters",
       {{"full_attention", {{"rope_type", "yarn"}}}},
       "rope_parameters is an object; expected an object of numbers and names."},
      {"llama", "is_causal", false, "is_causal is false; expected true."},
      {"qwen2", "is_causal", false, "is_causal is false; expected true."},
      {"qwen3", "is_causal", false, "is_causal is false; expected true."},
      {"gpt_neox", "is_causal", false, "is_causal is false; expected true."},
      {"llama", "rope_theta", -1, "rope_theta is -1; expected a number from 1 to 1e12."},
      {"llama", "mlp_bias", true, "mlp_bias is true; expected false, as attention_bias."},
      {"llama", "num_key_value_heads", 5,
       "num_key_value_heads is 5; expected an integer from 1 to 4."},
      {"llama", "head_dim", 0, "head_dim is 0; expected an integer from 1 to 1024."},
      {"llama", "attention_dropout", 0.1,
       "attention_dropout is 0.1; expected 0. Give model.dropout."},
      {"llama",
       "ablate",
       {{"backward", "exact"}},
       "ablate.init is missing; expected one of pytorch, pytorch_mha, xavier, gpt2."},
      {"qwen2", "use_sliding_window", true, "use_sliding_window is true; expected false."},
      {"qwen3", "attention_bias", true, "attention_bias is true; expected false."},
      {"qwen3",
       "layer_types",
       {"full_attention", "sliding_attention"},
       "layer_types is a list; expected full_attention of each block."},
      {"gpt_neox", "attention_bias", false, "attention_bias is false; expected true."},
      {"gpt_neox", "hidden_dropout", 0.1,
       "attention_dropout 0, hidden_dropout 0.1 differ; expected one probability. Give "
       "model.dropout."},
      {"gpt_neox", "rotary_pct", 0, "rotary_pct is 0; expected a number above 0, at most 1."},
  };
  for (const auto& [type, key, value, message] : cases) {
    StoredModel model = Tiny(type);
    model.config[key] = value;
    EXPECT_EQ(MessageOf(ReadModel(model).status()), absl::StrCat("config.json: ", message)) << key;
  }
}

TEST(RotaryFamiliesTest, RefusesModelsThatItCannotCompute) {
  StoredModel model = Tiny("llama");
  model.config["num_key_value_heads"] = 3;
  EXPECT_EQ(MessageOf(ReadModel(model).status()),
            "model.attention.kv_heads: Llama has no such model (3); expected a divisor of 4 "
            "heads.");
  model = Tiny("gpt_neox");
  model.config["rotary_pct"] = 0.25;
  EXPECT_EQ(MessageOf(ReadModel(model).status()),
            "model.rotary.share: GPT-NeoX has no such model (0.25); expected a share that rotates "
            "an even number of a head's 4 features.");
}

TEST(RotaryFamiliesTest, RefusesTwoFormsOfScaledPositions) {
  StoredModel model = Tiny("llama");
  model.config["rope_parameters"] = {{"rope_theta", 1e6}};
  model.config["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_EQ(MessageOf(ReadModel(model).status()),
            "config.json: rope_scaling is an object; expected none next to rope_parameters.");
}

TEST(RotaryFamiliesTest, TakesSharesThatRoundingMakesLarger) {
  ModelConfig model = MustRead(Tiny("gpt_neox")).model;
  model.width = 400;  // 100·0.14 is 14.000000000000002
  model.rotary.share = 0.14;
  EXPECT_THAT(MessageOf(WritePretrained(model, {}).status()), HasSubstr("parameters: there are 0"));
  model.rotary.share = 0.58;  // 57.99999999999999, of which transformers takes 57
  EXPECT_THAT(MessageOf(WritePretrained(model, {}).status()), HasSubstr("model.rotary.share"));
}

TEST(RotaryFamiliesTest, RefusesALlamaWhoseHeadsDoNotDivideTheWidth) {
  ModelConfig model = MustRead(Tiny("llama")).model;
  model.width = 18;
  model.attention.head_size = 6;
  EXPECT_EQ(MessageOf(WritePretrained(model, {}).status()),
            "model.width: Llama has no such model (18); expected a multiple of 4 heads.");
  model.attention.qkv_bias = true;  // transformers takes a Qwen2
  EXPECT_THAT(MessageOf(WritePretrained(model, {}).status()), HasSubstr("parameters: there are 0"));
}

TEST(RotaryFamiliesTest, RefusesTensorsOfAnotherModel) {
  StoredModel model = Tiny("llama");
  model.tensors["model.layers.0.self_attn.q_proj.bias"] = Numbers({16}, 1);
  EXPECT_EQ(MessageOf(ReadModel(model).status()),
            "model.safetensors: tensor 'model.layers.0.self_attn.q_proj.bias' isn't one of a Llama "
            "with 2 layers; expected only those of LlamaForCausalLM.");
  model = Tiny("qwen3");
  model.tensors.erase("model.layers.1.self_attn.k_norm.weight");
  EXPECT_EQ(MessageOf(ReadModel(model).status()),
            "tensor layers.1.self_attn.k_norm.weight is missing; expected [6].");
  model = Tiny("llama");
  model.config["head_dim"] = 8;
  EXPECT_EQ(MessageOf(ReadModel(model).status()),
            "model.safetensors: tensor 'model.layers.0.self_attn.q_proj.weight' has shape [16, "
            "16]; expected [32, 16], by config.json.");
}

TEST(RotaryFamiliesTest, TakesAGivenDropoutAndNoNorm) {
  StoredModel model = Tiny("llama");
  model.config["attention_dropout"] = 0.1;
  EXPECT_EQ(MustRead(model, {{}, 0.2}).model.dropout, 0.2);
  EXPECT_EQ(MessageOf(ReadModel(Tiny("llama"), {NormKind::kRms, {}}).status()),
            "model.norm.kind is given, but only a GPT-2 leaves it open; expected none.");
}

}  // namespace
}  // namespace ablate::engine
