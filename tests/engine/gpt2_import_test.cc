// Tests which GPT-2 files are read, and as which model: settings, norms, heads, tensors, shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "tests/engine/gpt2_files.h"

namespace ablate::engine {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFirstNormBias[] = "transformer.h.0.ln_1.bias";

TEST(ReadGpt2Test, ReadsTheSettings) {
  StoredModel stored = TinyGpt2();
  ModelConfig expected;
  expected.vocabulary = 5;
  expected.layers = 2;
  expected.width = 4;
  expected.heads = 2;
  expected.context = 6;
  expected.hidden = 16;
  expected.dropout = 0.1;
  expected.tied_head = true;
  expected.head_bias = false;
  expected.activation = Activation::kGeluTanh;
  expected.init.kind = InitKind::kGpt2;
  EXPECT_EQ(MustRead(stored).model, expected);
  stored.config.update({{"layer_norm_epsilon", 1e-6},
                        {"activation_function", "relu"},
                        {"n_head", 4},
                        {"embd_pdrop", 0},
                        {"attn_pdrop", 0.0},
                        {"resid_pdrop", 0},
                        {"reorder_and_upcast_attn", true},
                        {"task_specific_params", {{"a", {1, 2}}}}});
  expected.norm.eps = 1e-6;
  expected.activation = Activation::kRelu;
  expected.heads = 4;
  expected.dropout = 0;
  EXPECT_EQ(MustRead(stored).model, expected);
}

TEST(ReadGpt2Test, ReadsEveryActivation) {
  const std::pair<const char*, Activation> activations[] = {
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_python_tanh", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh},
      {"gelu_accurate", Activation::kGeluTanh},
      {"gelu", Activation::kGelu},
      {"gelu_python", Activation::kGelu},
      {"relu", Activation::kRelu},
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu}};
  for (const auto& [name, activation] : activations) {
    StoredModel stored = TinyGpt2();
    stored.config["activation_function"] = name;
    EXPECT_EQ(MustRead(stored).model.activation, activation) << name;
  }
}

TEST(ReadGpt2Test, TransposesWeightsOfBlocksOnly) {
  const StoredModel stored = TinyGpt2();
  const ImportedModel imported = MustRead(stored);
  const ParameterLayout layout = MakeLayout(imported.model);
  const auto own = [&](const std::string& name) {
    for (const ParameterInfo& parameter : layout.parameters) {
      if (parameter.name == name) return imported.parameters.begin() + parameter.offset;
    }
    ADD_FAILURE() << name;
    return imported.parameters.begin();
  };
  const std::vector<float> fused =
      FloatsOf(stored.tensors.at("transformer.h.1.attn.c_attn.weight"));
  for (int in = 0; in < 4; ++in) {
    for (int out = 0; out < 12; ++out) {
      EXPECT_EQ(own("block.1.attention.qkv.weight")[out * 4 + in], fused[in * 12 + out]);
    }
  }
  const std::pair<const char*, const char*> plain[] = {
      {"token_embedding.weight", "wte.weight"},
      {"position_embedding.weight", "wpe.weight"},
      {"block.0.attention.norm.weight", "h.0.ln_1.weight"},
      {"block.1.attention.norm.bias", "h.1.ln_1.bias"},
      {"block.0.attention.projection.bias", "h.0.attn.c_proj.bias"},
      {"block.1.feed_forward.norm.weight", "h.1.ln_2.weight"},
      {"block.1.feed_forward.up.bias", "h.1.mlp.c_fc.bias"},
      {"block.0.feed_forward.down.bias", "h.0.mlp.c_proj.bias"},
      {"final_norm.bias", "ln_f.bias"}};
  for (const auto& [name, theirs] : plain) {
    const std::vector<float> values =
        FloatsOf(stored.tensors.at(absl::StrCat("transformer.", theirs)));
    EXPECT_TRUE(std::equal(values.begin(), values.end(), own(name))) << name;
  }
  EXPECT_EQ(own("block.0.feed_forward.down.weight")[1],
            FloatsOf(stored.tensors.at("transformer.h.0.mlp.c_proj.weight"))[4]);
}

TEST(ReadGpt2Test, ReadsNamesWithoutPrefixAndIgnoresMasks) {
  const StoredModel stored = TinyGpt2();
  StoredModel plain = {stored.config, {}};
  for (const auto& [name, tensor] : stored.tensors) {
    plain.tensors[name.substr(std::string("transformer.").size())] = tensor;
  }
  plain.tensors["h.0.attn.bias"] = {TensorType::kBool, {1, 1, 6, 6}, std::string(36, '\1')};
  plain.tensors["h.1.attn.masked_bias"] = Numbers({}, 1);
  EXPECT_EQ(MustRead(plain).parameters, MustRead(stored).parameters);
}

TEST(ReadGpt2Test, ReadsOldNameOfTheContext) {
  StoredModel stored = TinyGpt2();
  stored.config["n_ctx"] = 6;
  EXPECT_TRUE(ReadModel(stored).ok());
  stored.config.erase("n_positions");
  EXPECT_EQ(MustRead(stored).model.context, 6);
}

// The names that transformers' GPT2Config maps to GPT-2's.
const std::pair<const char*, const char*> kAliases[] = {{"max_position_embeddings", "n_positions"},
                                                        {"hidden_size", "n_embd"},
                                                        {"num_hidden_layers", "n_layer"},
                                                        {"num_attention_heads", "n_head"}};

TEST(ReadGpt2Test, ReadsTheNamesThatTransformersMaps) {
  const StoredModel stored = TinyGpt2();
  StoredModel both = stored, renamed = stored;
  for (const auto& [alias, key] : kAliases) {
    both.config[alias] = stored.config[key];
    renamed.config[alias] = stored.config[key];
    renamed.config.erase(key);
  }
  for (const StoredModel& model : {both, renamed}) {
    EXPECT_EQ(MustRead(model).model, MustRead(stored).model);
  }
}

struct RefusedModel {
  const char* what;
  std::function<void(StoredModel*)> change;
  std::string message;
};

void ExpectRefused(const std::vector<RefusedModel>& cases) {
  for (const RefusedModel& item : cases) {
    StoredModel stored = TinyGpt2();
    item.change(&stored);
    const auto imported = ReadModel(stored);
    EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument) << item.what;
    EXPECT_EQ(MessageOf(imported.status()), item.message) << item.what;
  }
}

// Returns a model whose config.json has another value.
RefusedModel Setting(const std::string& key, nlohmann::json value, const std::string& message) {
  return {"", [=](StoredModel* model) { model->config[key] = value; },
          "config.json: " + key + " is " + message};
}

// Returns a model with another tensor.
RefusedModel Tensor(const std::string& name, const StoredTensor& tensor,
                    const std::string& message) {
  return {"", [=](StoredModel* model) { model->tensors[name] = tensor; },
          "model.safetensors: tensor '" + name + "' " + message};
}

TEST(ReadGpt2Test, RefusesSettingsThatItCannotRead) {
  ExpectRefused({
      Setting("model_type", "gptj", "'gptj'; expected one of gpt2, llama, qwen2, qwen3, gpt_neox."),
      Setting("model_type", nullptr,
              "missing; expected one of gpt2, llama, qwen2, qwen3, gpt_neox."),
      Setting("model_type", "ablate_gpt2",
              "'ablate_gpt2'; expected one of gpt2, llama, qwen2, qwen3, gpt_neox."),
      Setting("vocab_size", 0, "0; expected an integer from 1 to 1000000."),
      Setting("vocab_size", 5.0, "5.0; expected an integer from 1 to 1000000."),
      Setting("vocab_size", "5", "'5'; expected an integer from 1 to 1000000."),
      Setting("n_layer", -2, "-2; expected an integer from 1 to 200."),
      Setting("n_layer", 201, "201; expected an integer from 1 to 200."),
      Setting("n_layer", {2}, "a list; expected an integer from 1 to 200."),
      Setting("n_embd", 18446744073709551615u,
              "18446744073709551615; expected an integer from 1 to 8192."),
      Setting("n_embd", nullptr, "missing; expected an integer from 1 to 8192."),
      Setting("n_positions", nullptr, "missing; expected an integer from 1 to 8192."),
      Setting("n_ctx", 7, "7; expected n_positions, 6."),
      Setting("n_inner", 0, "0; expected an integer from 1 to 65536."),
      Setting("n_head", true, "true; expected an integer from 1 to 256."),
      {"heads", [](StoredModel* model) { model->config["n_head"] = 3; },
       "config.json: n_embd is 4; expected a multiple of n_head, 3."},
      Setting("activation_function", "tanh",
              "'tanh'; expected one of gelu_new, gelu_pytorch_tanh, gelu_python_tanh, gelu_fast, "
              "gelu_accurate, gelu, gelu_python, relu, silu, swish."),
      Setting("layer_norm_epsilon", -1e-5, "-1e-05; expected a number from 0 to 1."),
      Setting("layer_norm_epsilon", 2, "2; expected a number from 0 to 1."),
      Setting("layer_norm_epsilon", "1e-5", "'1e-5'; expected a number from 0 to 1."),
      Setting("resid_pdrop", 1, "1; expected at least 0 and below 1."),
      Setting("tie_word_embeddings", 1, "1; expected true or false."),
      Setting("scale_attn_weights", false, "false; expected true."),
      Setting("scale_attn_by_inverse_layer_idx", true, "true; expected false."),
      Setting("add_cross_attention", true, "true; expected false."),
      Setting("is_causal", false, "false; expected true."),
      {"dropout", [](StoredModel* model) { model->config["attn_pdrop"] = 0; },
       "config.json: embd_pdrop 0.1, attn_pdrop 0, resid_pdrop 0.1 differ; expected one "
       "probability. Give model.dropout."},
  });
}

TEST(ReadGpt2Test, RefusesNamesOfASizeThatContradictEachOther) {
  for (const auto& [alias, key] : kAliases) {
    StoredModel stored = TinyGpt2();
    const int value = stored.config[key];
    stored.config[alias] = value + 1;
    EXPECT_EQ(MessageOf(ReadModel(stored).status()),
              absl::StrCat("config.json: ", alias, " is ", value + 1, "; expected ", key, ", ",
                           value, "."));
  }
  ExpectRefused({
      {"no name of GPT-2's",
       [](StoredModel* model) {
         model->config.erase("n_positions");
         model->config.update({{"max_position_embeddings", 6}, {"n_ctx", 7}});
       },
       "config.json: n_ctx is 7; expected max_position_embeddings, 6."},
      {"heads",
       [](StoredModel* model) {
         model->config.erase("n_head");
         model->config.erase("n_embd");
         model->config.update({{"num_attention_heads", 3}, {"hidden_size", 4}});
       },
       "config.json: hidden_size is 4; expected a multiple of num_attention_heads, 3."},
      Setting("hidden_size", "4", "'4'; expected an integer from 1 to 8192."),
  });
}

TEST(ReadGpt2Test, RefusesModelsThatAreTooLarge) {
  StoredModel stored = TinyGpt2();
  stored.config.update({{"n_embd", 8192}, {"n_layer", 200}});
  EXPECT_THAT(MessageOf(ReadModel(stored).status()),
              HasSubstr("parameters); expected at most 2147483648."));
}

TEST(ReadGpt2Test, RefusesConfigsThatAreNoJsonObject) {
  const std::string tensors = FileOf(TinyGpt2().tensors);
  const std::string deep = "{\"a\": " + std::string(500000, '[') + std::string(500000, ']') + "}";
  const std::string object = TinyGpt2().config.dump();
  std::string many = "{\"a\": [0";
  for (int i = 1; i < 100000; ++i) many += ",0";
  const auto not_json = [](const std::string& word) {
    return word + " isn't JSON there; expected an object {…} in UTF-8, with finite numbers.";
  };
  const struct {
    std::string config;
    std::string message;  // after "config.json"
  } cases[] = {
      {"[]", ": the file isn't a JSON object; expected {…} in UTF-8."},
      {"3", ": the file isn't a JSON object; expected {…} in UTF-8."},
      {"", ":1: the file ends early; expected more JSON."},
      {"{\n\"a\": [1,\n", ":3: the file ends early; expected more JSON."},
      {"// hi\n{}", ":1: a comment isn't JSON; expected none. Remove it."},
      {"{\n  # hi\n}", ":2: a comment isn't JSON; expected none. Remove it."},
      {"{\n\"n_head\": 4, \"x\": NaN}", not_json(":2: 'NaN'")},
      {"{\n\n\"x\": -Infinity}", not_json(":3: '-Infinity'")},
      {"{\"x\": True}", not_json(":1: 'True'")},
      {"{\"x\": 1,\n}", not_json(":2: '}'")},
      {"{\"x\": 'a'}", not_json(":1: '\\''")},
      {"{} {}", not_json(":1: '{'")},
      {"{\"\xFF\": 1}", not_json(":1: '\\xff'")},
      {"{\"x\":\n1e999}", ":2: the number '1e999' is too large; expected at most 1e308."},
      {object + std::string("\0x", 2),
       absl::StrCat(": the file has a NUL at byte ", object.size(), "; expected JSON in UTF-8.")},
      {deep, ": 'a' is nested too deep; expected at most 16 levels."},
      {many + "]}", ": the file has more values than the 100000 that it may have."},
      {"{\"n_head\": 2, \"n_head\": 2}", ": 'n_head' is there twice; expected it once."},
      {"{\"a\": [{\"b\": {\"c\": 1, \"\\u0063\": 2}}]}",
       ": 'a.b.c' is there twice; expected it once."},
  };
  for (const auto& [config, message] : cases) {
    EXPECT_EQ(
        MessageOf(ReadFiles({{"config.json", config}, {"model.safetensors", tensors}}).status()),
        "config.json" + message);
  }
  EXPECT_EQ(MessageOf(ReadFiles({{"config.json", object + std::string(1 << 20, ' ')},
                                 {"model.safetensors", tensors}})
                          .status()),
            absl::StrCat("config.json: the file has ", object.size() + (1 << 20),
                         " bytes; expected at most 1048576."));
}

TEST(ReadGpt2Test, RefusesTensorsThatAreNotTheModels) {
  const char* const foreign =
      "isn't one of a GPT-2 with 2 layers; expected only those of GPT2LMHeadModel.";
  std::vector<float> infinite(16);
  infinite[6] = -INFINITY;
  ExpectRefused({
      {"missing",
       [](StoredModel* model) { model->tensors.erase("transformer.h.1.mlp.c_fc.weight"); },
       "tensor h.1.mlp.c_fc.weight is missing; expected [4, 16]."},
      {"missing bias",
       [](StoredModel* model) { model->tensors.erase("transformer.h.0.attn.c_attn.bias"); },
       "tensor h.0.attn.c_attn.bias is missing; expected [12]."},
      Tensor("transformer.h.0.attn.q.weight", Numbers({4}, 1), foreign),
      Tensor("h.2.attn.bias", Numbers({4}, 1), foreign),
      Tensor("transformer.lm_head.weight", Numbers({5, 4}, 1), foreign),
      Tensor("lm_head.bias", Numbers({5}, 1), foreign),
      Tensor("transformer.h.0.attn.c_attn.weight", Numbers({12, 4}, 1),
             "has shape [12, 4]; expected [4, 12], by config.json."),
      {"another vocabulary", [](StoredModel* model) { model->config["vocab_size"] = 6; },
       "model.safetensors: tensor 'transformer.wte.weight' has shape [5, 4]; expected [6, 4], by "
       "config.json."},
      Tensor("wpe.weight", TinyGpt2().tensors["transformer.wpe.weight"],
             "is also there as 'transformer.wpe.weight'; expected one of them."),
      Tensor("transformer.ln_f.bias", {TensorType::kU8, {4}, "abcd"},
             "is U8; expected F16, BF16, F32 or F64."),
      Tensor("transformer.ln_f.bias", TensorOfFloats({4}, {0, 1, 2, NAN}),
             "has nan at element 3; expected finite values."),
      Tensor("transformer.h.1.attn.c_proj.weight", TensorOfFloats({4, 4}, infinite),
             "has -inf at element 6; expected finite values."),
  });
}

TEST(ReadGpt2Test, RefusesAHeaderOfManyTensors) {
  std::string header = "{";
  for (int i = 0; i < 100000; ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"t", i,
                    "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}");
  }
  header += "}";
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  EXPECT_THAT(MessageOf(ReadFiles({{"config.json", TinyGpt2().config.dump()},
                                   {"model.safetensors", length + header}})
                            .status()),
              HasSubstr("the header has more tensors than the 16384 that it may have"));
}

TEST(ReadGpt2HeadTest, IsTiedUnlessTheFilesDiffer) {
  StoredModel stored = TinyGpt2();
  stored.tensors["lm_head.weight"] = stored.tensors["transformer.wte.weight"];
  const ImportedModel tied = MustRead(stored);
  EXPECT_TRUE(tied.model.tied_head);
  stored.config["tie_word_embeddings"] = false;
  const ImportedModel untied = MustRead(stored);
  EXPECT_FALSE(untied.model.tied_head);
  EXPECT_EQ(untied.parameters.size(), tied.parameters.size() + 20);
  stored.config.erase("tie_word_embeddings");
  stored.tensors["lm_head.weight"].bytes[3] ^= 1;
  const ImportedModel differing = MustRead(stored);
  EXPECT_FALSE(differing.model.tied_head);
  EXPECT_THAT(differing.notes, Contains(HasSubstr("model.tied_head is false")));
  const std::vector<float> head = FloatsOf(stored.tensors["lm_head.weight"]);
  EXPECT_TRUE(std::equal(head.begin(), head.end(), differing.parameters.end() - 20));
  stored.tensors.erase("lm_head.weight");
  stored.config["tie_word_embeddings"] = false;
  EXPECT_EQ(MessageOf(ReadModel(stored).status()),
            "tensor lm_head.weight is missing; expected [5, 4].");
}

TEST(ReadGpt2HeadTest, IsTheEmbeddingIfItIsTiedAndAlone) {
  const StoredModel stored = TinyGpt2();
  StoredModel alone = stored;
  alone.tensors["lm_head.weight"] = alone.tensors["transformer.wte.weight"];
  alone.tensors.erase("transformer.wte.weight");
  const ImportedModel imported = MustRead(alone);
  EXPECT_EQ(imported.model, MustRead(stored).model);
  EXPECT_EQ(imported.parameters, MustRead(stored).parameters);
  EXPECT_THAT(imported.notes, Contains("The token embedding is lm_head.weight, because the head is "
                                       "tied and wte.weight is missing."));
  alone.tensors["lm_head.weight"] = Numbers({4, 5}, 1);
  EXPECT_EQ(MessageOf(ReadModel(alone).status()),
            "model.safetensors: tensor 'lm_head.weight' has shape [4, 5]; expected [5, 4], by "
            "config.json.");
  alone.config["tie_word_embeddings"] = false;
  EXPECT_EQ(MessageOf(ReadModel(alone).status()), "tensor wte.weight is missing; expected [5, 4].");
}

TEST(ReadGpt2NormTest, InfersSitesFromTensors) {
  const struct {
    const char* removed;
    bool NormConfig::*site;
    const char* note;
  } cases[] = {{".ln_1.", &NormConfig::attention,
                "model.norm.attention is false, because there is no h.0.ln_1.weight."},
               {".ln_2.", &NormConfig::feed_forward,
                "model.norm.feed_forward is false, because there is no h.0.ln_2.weight."},
               {".ln_f.", &NormConfig::final,
                "model.norm.final is false, because there is no ln_f.weight."}};
  ModelConfig whole = MustRead(TinyGpt2()).model;
  for (const auto& [removed, site, note] : cases) {
    StoredModel stored = TinyGpt2();
    RemoveTensors(&stored, removed);
    const ImportedModel imported = MustRead(stored);
    ModelConfig expected = whole;
    expected.norm.*site = false;
    EXPECT_EQ(imported.model, expected) << removed;
    EXPECT_THAT(
        imported.notes,
        ElementsAre(note, "model.norm.kind is layer, because norms have a weight and a bias."));
  }
  StoredModel none = TinyGpt2();
  RemoveTensors(&none, ".ln_");
  EXPECT_FALSE(HasAttentionNorm(MustRead(none).model));
  EXPECT_THAT(MustRead(none).notes,
              Contains("model.norm.kind is layer, without effect, because there are no norms."));
}

// Returns a model whose norms have no biases.
StoredModel WithoutNormBiases() {
  StoredModel stored = TinyGpt2();
  for (const char* norm : {"ln_1.bias", "ln_2.bias", "ln_f.bias"}) RemoveTensors(&stored, norm);
  return stored;
}

TEST(ReadGpt2NormTest, NeedsTheKindOfNormsWithoutBias) {
  const StoredModel stored = WithoutNormBiases();
  EXPECT_EQ(MessageOf(ReadModel(stored).status()),
            "model.norm.kind: norms have a weight and no bias, which can be either kind; expected "
            "rms, or layer for a LayerNorm without bias. Give model.norm.kind.");
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    const ImportedModel imported = MustRead(stored, {kind, {}});
    EXPECT_EQ(imported.model.norm.kind, kind);
    EXPECT_FALSE(imported.model.norm.bias);
    EXPECT_THAT(imported.notes, Contains(HasSubstr("as given")));
  }
}

TEST(ReadGpt2NormTest, RefusesNormsThatDiffer) {
  const auto missing = [](const char* absent, const char* present) {
    return absl::StrCat(
        "tensor ", absent, " is missing, but ", present,
        " is there; expected the same tensors in every block, and the same of every norm.");
  };
  ExpectRefused({
      {"one block without", [](StoredModel* model) { RemoveTensors(model, "h.1.ln_1."); },
       missing("h.1.ln_1.weight", "h.0.ln_1.weight")},
      {"one block with", [](StoredModel* model) { RemoveTensors(model, "h.0.ln_2."); },
       missing("h.0.ln_2.weight", "h.1.ln_2.weight")},
      {"one bias missing", [](StoredModel* model) { RemoveTensors(model, "h.1.ln_2.bias"); },
       missing("h.1.ln_2.bias", "h.0.ln_1.bias")},
      {"biases of one site missing", [](StoredModel* model) { RemoveTensors(model, "ln_1.bias"); },
       missing("h.0.ln_1.bias", "h.0.ln_2.bias")},
      {"final bias missing", [](StoredModel* model) { RemoveTensors(model, "ln_f.bias"); },
       missing("ln_f.bias", "h.0.ln_1.bias")},
      {"bias only", [](StoredModel* model) { RemoveTensors(model, "ln_f.weight"); },
       missing("ln_f.weight", "ln_f.bias")},
  });
}

TEST(ReadGpt2NormTest, RefusesOverridesThatContradictTheFiles) {
  EXPECT_EQ(MessageOf(ReadModel(TinyGpt2(), {NormKind::kRms, {}}).status()),
            "model.norm.kind: rms is given, but the norms have biases; expected layer.");
  EXPECT_EQ(MessageOf(ReadModel(TinyGpt2(), {NormKind::kBatch, {}}).status()),
            "model.norm.kind: batch is given, but GPT-2 has no such norm; expected layer or rms.");
  EXPECT_TRUE(ReadModel(TinyGpt2(), {NormKind::kLayer, {}}).ok());
}

nlohmann::json Record() {
  return {{"norm",
           {{"kind", "rms"},
            {"placement", "pre"},
            {"backward", "exact"},
            {"bias", false},
            {"attention", true},
            {"feed_forward", true},
            {"final", true}}},
          {"init", {{"kind", "gpt2"}, {"streams", "by_name"}}},
          {"loss", "all"}};
}

TEST(ReadGpt2RecordTest, TakesTheNormFromConfig) {
  StoredModel stored = WithoutNormBiases();
  stored.config["ablate"] = Record();
  const ImportedModel imported = MustRead(stored);
  EXPECT_EQ(imported.model.norm.kind, NormKind::kRms);
  EXPECT_FALSE(imported.model.norm.bias);
  EXPECT_THAT(imported.notes, ElementsAre("model.norm.kind is rms, as config.json says."));
  EXPECT_EQ(MessageOf(ReadModel(stored, {NormKind::kLayer, {}}).status()),
            "model.norm.kind: layer is given, but config.json has another kind; expected rms.");
}

TEST(ReadGpt2RecordTest, RefusesARecordThatIsMalformedOrContradictsTheTensors) {
  const struct {
    std::function<void(nlohmann::json*)> change;
    const char* message;
  } cases[] = {
      {[](nlohmann::json* record) { *record = 1; },
       "config.json: ablate lacks the objects norm and init; expected both. Export the model "
       "again."},
      {[](nlohmann::json* record) { record->erase("init"); },
       "config.json: ablate lacks the objects norm and init; expected both. Export the model "
       "again."},
      {[](nlohmann::json* record) { (*record)["norm"]["kind"] = "rmsnorm"; },
       "config.json: ablate.norm.kind is 'rmsnorm'; expected one of layer, rms, batch, l2, dyt, "
       "derf."},
      {[](nlohmann::json* record) { (*record)["norm"].erase("bias"); },
       "config.json: ablate.norm.bias is missing; expected true or false."},
      {[](nlohmann::json* record) { (*record)["norm"]["final"] = "yes"; },
       "config.json: ablate.norm.final is 'yes'; expected true or false."},
      {[](nlohmann::json* record) { (*record)["init"]["streams"] = 1; },
       "config.json: ablate.init.streams is 1; expected a string."},
      {[](nlohmann::json* record) { record->erase("loss"); },
       "config.json: ablate.loss is missing; expected one of all, last."},
      {[](nlohmann::json* record) { (*record)["norm"]["kind"] = "batch"; },
       "model.norm.kind: GPT-2 has no such model (batch); expected layer or rms."},
      {[](nlohmann::json* record) { (*record)["norm"]["placement"] = "post"; },
       "model.norm.placement: GPT-2 has no such model (post); expected pre or none."},
      {[](nlohmann::json* record) { (*record)["norm"]["bias"] = true; },
       "model.norm.bias: GPT-2 has no such model (true with norm kind rms); expected false."},
      {[](nlohmann::json* record) {
         (*record)["norm"].update({{"kind", "layer"}, {"bias", true}});
       },
       "config.json: ablate.norm.bias is true, but the tensors have no biases of norms; expected "
       "both to agree."},
      {[](nlohmann::json* record) { (*record)["norm"]["attention"] = false; },
       "config.json: ablate.norm.attention is false, but the tensors have that norm; expected both "
       "to agree."},
      {[](nlohmann::json* record) { (*record)["norm"]["placement"] = "none"; },
       "config.json: ablate.norm.attention is false, but the tensors have that norm; expected both "
       "to agree."},
  };
  for (const auto& [change, message] : cases) {
    StoredModel stored = WithoutNormBiases();
    stored.config["ablate"] = Record();
    change(&stored.config["ablate"]);
    EXPECT_EQ(MessageOf(ReadModel(stored).status()), message);
  }
  StoredModel stored = WithoutNormBiases();
  stored.config["ablate"] = Record();
  RemoveTensors(&stored, "ln_f");
  EXPECT_EQ(MessageOf(ReadModel(stored).status()),
            "config.json: ablate.norm.final is true, but the tensors have no such norm; expected "
            "both to agree.");
}

TEST(ReadGpt2DropoutTest, TakesTheGivenProbability) {
  StoredModel stored = TinyGpt2();
  stored.config["attn_pdrop"] = 0;
  const ImportedModel imported = MustRead(stored, {{}, 0.25});
  EXPECT_EQ(imported.model.dropout, 0.25);
  EXPECT_THAT(imported.notes, Contains("model.dropout is 0.25, as given; config.json has "
                                       "embd_pdrop 0.1, attn_pdrop 0, resid_pdrop 0.1."));
  for (const double bad : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THAT(MessageOf(ReadModel(stored, {{}, bad}).status()),
                HasSubstr("expected at least 0 and below 1"));
  }
}

TEST(ReadGpt2FilesTest, RefusesFilesThatAreMissingOrRepeated) {
  const std::vector<NamedFile> files = FilesOf(TinyGpt2());
  EXPECT_EQ(MessageOf(ReadFiles({files[1]}).status()),
            "config.json: the file is missing; expected it with model.safetensors.");
  EXPECT_EQ(MessageOf(ReadFiles({files[0]}).status()),
            "model.safetensors: the file is missing; expected it, or shards with "
            "model.safetensors.index.json.");
  EXPECT_EQ(MessageOf(ReadFiles({files[0], files[1], files[0]}).status()),
            "config.json: the file is given twice; expected one.");
  EXPECT_EQ(MessageOf(ReadFiles({files[0], files[1], {"b.safetensors", files[1].bytes}}).status()),
            "b.safetensors: this is the second tensor file; expected one, or "
            "model.safetensors.index.json. Give the index.");
  EXPECT_EQ(MessageOf(ReadFiles({files[0], files[1], {"a\n", ""}}).status()),
            "files: the name 'a\\n' isn't text; expected at most 255 characters in UTF-8.");
  EXPECT_EQ(MessageOf(ReadFiles({files[0], {"model.safetensors", "x"}}).status()),
            "model.safetensors: safetensors: the file has 1 bytes, but must have at least 8");
}

TEST(ReadGpt2FilesTest, RefusesPicklesWithTheirConversion) {
  const std::vector<NamedFile> files = FilesOf(TinyGpt2());
  for (const char* name : {"pytorch_model.bin", "model.pt", "model.pth", "model.pkl", "a.ckpt"}) {
    EXPECT_EQ(
        MessageOf(ReadFiles({files[0], {name, "\x80"}}).status()),
        absl::StrCat(name,
                     ": a pickle can run code and is never read; expected model.safetensors. "
                     "Convert it in its folder: python -c \"from transformers import "
                     "AutoModelForCausalLM; "
                     "AutoModelForCausalLM.from_pretrained('.').save_pretrained('converted')\""));
  }
  // Beside tensors that can be read, it is ignored like other files.
  EXPECT_TRUE(
      ReadFiles({files[0], files[1], {"pytorch_model.bin", "\x80"}, {"vocab.json", ""}}).ok());
}

// A sharded model: three files and their index.
struct ShardedModel {
  nlohmann::json map;
  std::map<std::string, StoredTensors> shards;
};

ShardedModel Sharded() {
  ShardedModel sharded;
  int count = 0;
  for (const auto& [name, tensor] : TinyGpt2().tensors) {
    const std::string file = absl::StrCat("model-", ++count % 3 + 1, "-of-3.safetensors");
    sharded.map[name] = file;
    sharded.shards[file][name] = tensor;
  }
  return sharded;
}

std::vector<NamedFile> FilesOf(const ShardedModel& sharded) {
  const nlohmann::json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", sharded.map}};
  std::vector<NamedFile> files = {{"config.json", TinyGpt2().config.dump()},
                                  {"model.safetensors.index.json", index.dump()}};
  for (const auto& [name, tensors] : sharded.shards) files.push_back({name, FileOf(tensors)});
  return files;
}

TEST(ReadGpt2ShardsTest, ReadsTheSameModelAsOneFile) {
  const auto imported = ReadFiles(FilesOf(Sharded()));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->parameters, MustRead(TinyGpt2()).parameters);
}

TEST(ReadGpt2ShardsTest, RefusesShardsThatDisagreeWithTheIndex) {
  constexpr char kFirst[] = "model-1-of-3.safetensors";
  const struct {
    std::function<void(ShardedModel*)> change;
    std::string message;
  } cases[] = {
      {[](ShardedModel* model) { model->shards.erase("model-2-of-3.safetensors"); },
       "model.safetensors.index.json: the file 'model-2-of-3.safetensors' is missing; expected "
       "every file of weight_map. Give all of them."},
      {[](ShardedModel* model) { model->map["x"] = "../a"; },
       "model.safetensors.index.json: the file '../a' is missing; expected every file of "
       "weight_map. Give all of them."},
      {[](ShardedModel* model) { model->shards["model.safetensors"] = {}; },
       "model.safetensors: the index doesn't name this file; expected only its shards."},
      {[](ShardedModel* model) { model->map.erase(kFirstNormBias); },
       absl::StrCat("model-3-of-3.safetensors: tensor '", kFirstNormBias,
                    "' isn't in the index; expected only its tensors.")},
      {[&](ShardedModel* model) { model->map[kFirstNormBias] = kFirst; },
       absl::StrCat("model-3-of-3.safetensors: tensor '", kFirstNormBias,
                    "' is there; expected it in '", kFirst, "', as the index says.")},
      {[&](ShardedModel* model) { model->map["transformer.extra"] = kFirst; },
       absl::StrCat(kFirst, ": tensor 'transformer.extra' is missing; the index has it there.")},
      {[&](ShardedModel* model) { model->map["h.0.ln_1.bias"] = kFirst; },
       absl::StrCat(kFirst, ": tensor 'h.0.ln_1.bias' is missing; the index has it there.")},
      {[](ShardedModel* model) { model->map = nlohmann::json::object(); },
       "model.safetensors.index.json: weight_map is missing; expected an object with the file of "
       "each tensor."},
      {[](ShardedModel* model) { model->map["wte.weight"] = 1; },
       "model.safetensors.index.json: weight_map has 1 for tensor 'wte.weight'; expected the name "
       "of a file."},
  };
  for (const auto& [change, message] : cases) {
    ShardedModel sharded = Sharded();
    change(&sharded);
    EXPECT_EQ(MessageOf(ReadFiles(FilesOf(sharded)).status()), message);
  }
}

TEST(ReadGpt2ShardsTest, RefusesAnIndexWithRepeatedKeys) {
  std::vector<NamedFile> files = FilesOf(Sharded());
  files[1].bytes = R"({"weight_map": {"a": "1.safetensors", "a": "2.safetensors"}})";
  EXPECT_EQ(MessageOf(ReadFiles(files).status()),
            "model.safetensors.index.json: 'weight_map.a' is there twice; expected it once.");
}

TEST(ReadGpt2ShardsTest, RefusesATensorInTwoShards) {
  ShardedModel sharded = Sharded();
  const StoredTensor tensor = TinyGpt2().tensors.at(kFirstNormBias);
  sharded.shards["model-1-of-3.safetensors"]["h.0.ln_1.bias"] = tensor;
  sharded.map["h.0.ln_1.bias"] = "model-1-of-3.safetensors";
  EXPECT_THAT(MessageOf(ReadFiles(FilesOf(sharded)).status()),
              AllOf(HasSubstr("is also there as"), HasSubstr("ln_1.bias")));
}

TEST(ImportedCheckpointTest, HasTheModelsParameters) {
  const ImportedModel imported = MustRead(TinyGpt2());
  auto checkpoint = ImportedCheckpoint(imported);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ParameterLayout layout = MakeLayout(imported.model);
  const auto tensors = ReadCheckpoint(layout, *checkpoint);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  std::string bytes;
  for (const absl::string_view piece : tensors->parameters) absl::StrAppend(&bytes, piece);
  EXPECT_EQ(bytes, std::string(reinterpret_cast<const char*>(imported.parameters.data()),
                               4 * imported.parameters.size()));
  const auto file = ParseSafetensors(*checkpoint);
  EXPECT_EQ(file->metadata.at("trainer"), "imported");
  EXPECT_EQ(file->metadata.at("imported_from"), "gpt2");
  EXPECT_EQ(file->metadata.at("model"), ModelJson(imported.model));
  ImportedModel damaged = imported;
  damaged.parameters.pop_back();
  EXPECT_FALSE(ImportedCheckpoint(damaged).ok());
}

}  // namespace
}  // namespace ablate::engine
