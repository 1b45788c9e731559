// Llama, Qwen2, Qwen3 and GPT-NeoX as families of pretrained models: rotary positions, and names of
// sizes that they share.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/core/pretrained/family.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

constexpr ConfigSize kRotarySizes[] = {
    {"vocab_size", "model.vocabulary", &ModelConfig::vocabulary, 1'000'000},
    // Rotary positions have no parameters, so that a model can be read with a shorter context.
    {.key = "max_position_embeddings",
     .field = "model.context",
     .member = &ModelConfig::context,
     .max = 8192,
     .shortened = true},
    {"hidden_size", "model.width", &ModelConfig::width, 8192},
    {"num_hidden_layers", "model.layers", &ModelConfig::layers, 200},
    {"num_attention_heads", "model.heads", &ModelConfig::heads, 256},
    {"intermediate_size", "model.feed_forward.hidden", &ModelConfig::hidden, 65536}};
constexpr int kMaxHeadSize = 1024;

constexpr NamedActivation kGated[] = {{"silu", Activation::kSwiglu},
                                      {"swish", Activation::kSwiglu},
                                      {"gelu", Activation::kGeglu},
                                      {"relu", Activation::kReglu}};

constexpr FixedFlag kCausal[] = {{"is_causal", true}};
constexpr FixedFlag kNoWindow[] = {{"is_causal", true}, {"use_sliding_window", false}};
constexpr FixedFlag kNoBias[] = {
    {"is_causal", true}, {"use_sliding_window", false}, {"attention_bias", false}};
constexpr FixedFlag kBias[] = {{"is_causal", true}, {"attention_bias", true}};

constexpr absl::string_view kAttentionDropout[] = {"attention_dropout"};
constexpr absl::string_view kNeoxDropouts[] = {"attention_dropout", "hidden_dropout"};

// Constants that old files have.
constexpr absl::string_view kLlamaConstants[] = {"layers.#.self_attn.rotary_emb.inv_freq"};
constexpr absl::string_view kNeoxConstants[] = {"layers.#.attention.bias",
                                                "layers.#.attention.masked_bias",
                                                "layers.#.attention.rotary_emb.inv_freq"};

ModelConfig LlamaBase() {
  ModelConfig model;
  model.positions = Positions::kRotary;
  model.bias = false;
  model.tied_head = false;
  model.head_bias = false;
  model.activation = Activation::kSwiglu;
  model.norm.kind = NormKind::kRms;
  model.norm.bias = false;
  model.norm.eps = 1e-6;
  model.init.kind = InitKind::kGpt2;
  return model;
}

ModelConfig Qwen2Base() {
  ModelConfig model = LlamaBase();
  model.attention.qkv_bias = true;
  return model;
}

ModelConfig Qwen3Base() {
  ModelConfig model = LlamaBase();
  model.attention.qk_norm.kind = QkNormKind::kRms;
  return model;
}

ModelConfig NeoxBase() {
  ModelConfig model;
  model.positions = Positions::kRotary;
  model.parallel = model.parallel_norms = true;
  model.rotary.share = 0.25;
  model.tied_head = false;
  model.head_bias = false;
  model.init.kind = InitKind::kGpt2;
  return model;
}

// Returns the factor of scores of a model without one of its own.
double ScaleOfScores(const ModelConfig& model) {
  return 1 / std::sqrt(static_cast<double>(HeadSize(model)));
}

absl::Status CheckRotary(const Family& family, const ModelConfig& model) {
  // transformers rounds down, and we to the nearest.
  const int rotated = static_cast<int>(HeadSize(model) * model.rotary.share);
  if (rotated >= 2 && rotated % 2 == 0 && rotated == RotatedFeatures(model)) {
    return absl::OkStatus();
  }
  return NotOfFamily(family, "model.rotary.share", text::ShortestDecimal(model.rotary.share),
                     absl::StrCat("a share that rotates an even number of a head's ",
                                  HeadSize(model), " features"));
}

absl::Status CheckLlamaLike(const Family& family, const ModelConfig& model) {
  RETURN_IF_ERROR(CheckRotary(family, model));
  if (HeadSize(model) > kMaxHeadSize) {
    return NotOfFamily(family, "model.attention.head_size", absl::StrCat(HeadSize(model)),
                       absl::StrCat("1 to ", kMaxHeadSize));
  }
  if (model.heads % KvHeads(model) != 0) {
    return NotOfFamily(family, "model.attention.kv_heads", absl::StrCat(KvHeads(model)),
                       absl::StrCat("a divisor of ", model.heads, " heads"));
  }
  const QkNormConfig& norm = model.attention.qk_norm;
  if (norm.kind == QkNormKind::kNone || norm.scale == ScaleOfScores(model)) return absl::OkStatus();
  return NotOfFamily(family, "model.attention.qk_norm.scale", text::ShortestDecimal(norm.scale),
                     text::ShortestDecimal(ScaleOfScores(model)));
}

// transformers wants heads that divide the width, even if they have a size of their own.
absl::Status CheckLlama(const Family& family, const ModelConfig& model) {
  if (model.width % model.heads == 0) return CheckLlamaLike(family, model);
  return NotOfFamily(family, "model.width", absl::StrCat(model.width),
                     absl::StrCat("a multiple of ", model.heads, " heads"));
}

absl::Status CheckNeox(const Family& family, const ModelConfig& model) {
  RETURN_IF_ERROR(CheckRotary(family, model));
  if (model.parallel == model.parallel_norms) return absl::OkStatus();
  return NotOfFamily(family, "model.parallel_norms", "false with parallel true", "true");
}

// Reads rotary positions of both forms: rope_parameters of transformers 5, and the members of older
// versions. `theta` and `share` are the keys of the latter.
absl::Status ReadRotary(JsonMembers& members, absl::string_view theta, absl::string_view share,
                        RotaryConfig* rotary) {
  constexpr absl::string_view kTheta = "a number from 1 to 1e12",
                              kShare = "a number above 0, at most 1";
  constexpr double kLeast = 1e-6, kMostTheta = 1e12;
  members.Number(theta, 1, kMostTheta, kTheta, &rotary->theta);
  members.Number(share, kLeast, 1, kShare, &rotary->share);
  if (members.Has("rope_parameters") && members.Has("rope_scaling")) {
    members.Refuse("rope_scaling", "none next to rope_parameters");
  }
  for (const absl::string_view key : {"rope_parameters", "rope_scaling"}) {
    const nlohmann::json* object = members.Find(key);
    if (object == nullptr) continue;
    // Positions of several kinds are objects below it.
    const bool flat = object->is_object() && std::none_of(object->begin(), object->end(),
                                                          [](auto& m) { return m.is_object(); });
    if (!flat) members.Refuse(key, "an object of numbers and names");
    RETURN_IF_ERROR(members.status());
    JsonMembers rope(kConfigName, *object, absl::StrCat(key, "."));
    for (const absl::string_view type : {"rope_type", "type"}) {
      std::string name = "default";
      rope.Text(type, &name);
      if (name != "default") rope.Refuse(type, "'default': no scaling of positions");
    }
    rope.Number("rope_theta", 1, kMostTheta, kTheta, &rotary->theta);
    rope.Number("partial_rotary_factor", kLeast, 1, kShare, &rotary->share);
    RETURN_IF_ERROR(rope.status());
  }
  return members.status();
}

// Reads the settings that only we have: those of training.
absl::Status ReadTrainingRecord(bool keeps_dropout, JsonMembers& members,
                                const ImportOverrides& overrides, FamilyConfig* config) {
  const nlohmann::json* record = members.Find(kRecordKey);
  if (record == nullptr) return absl::OkStatus();
  if (!record->is_object()) members.Refuse(kRecordKey, "an object");
  RETURN_IF_ERROR(members.status());
  ModelConfig& model = config->model;
  JsonMembers kept(kConfigName, *record, absl::StrCat(kRecordKey, "."));
  kept.Value("backward", &model.norm.backward);
  kept.Value("init", &model.init.kind);
  kept.Value("streams", &model.init.streams);
  kept.Value("outputs", &model.init.outputs);
  kept.Value("loss", &model.loss);
  // A Llama or Qwen has no member for our dropout, which is of more than attention.
  if (keeps_dropout && !overrides.dropout.has_value()) {
    kept.Require("dropout", "a number");
    kept.Number("dropout", 0, kLargestBelowOne, "at least 0 and below 1", &model.dropout);
  }
  return kept.status();
}

absl::Status ReadCommon(absl::Span<const absl::string_view> dropouts, bool keeps_dropout,
                        JsonMembers& members, const ImportOverrides& overrides,
                        FamilyConfig* config) {
  if (overrides.norm_kind.has_value()) {
    return absl::InvalidArgumentError(
        "model.norm.kind is given, but only a GPT-2 leaves it open; expected none.");
  }
  RETURN_IF_ERROR(ReadDropout(dropouts, 0, members, overrides, config));
  return ReadTrainingRecord(keeps_dropout, members, overrides, config);
}

absl::Status ReadLlama(const Family&, JsonMembers& members, const ImportOverrides& overrides,
                       FamilyConfig* config) {
  ModelConfig& model = config->model;
  AttentionConfig& attention = model.attention;
  RETURN_IF_ERROR(members.status());
  ReadEps("rms_norm_eps", members, &model);
  members.Integer("num_key_value_heads", 1, model.heads, &attention.kv_heads);
  if (attention.kv_heads == model.heads) attention.kv_heads = 0;
  members.Integer("head_dim", 1, kMaxHeadSize, &attention.head_size);
  if (attention.head_size * model.heads == model.width) attention.head_size = 0;
  if (attention.qk_norm.kind != QkNormKind::kNone) attention.qk_norm.scale = ScaleOfScores(model);
  if (const auto* types = members.Find("layer_types"); types != nullptr) {
    const bool full =
        types->is_array() && std::all_of(types->begin(), types->end(),
                                         [](auto& type) { return type == "full_attention"; });
    if (!full) members.Refuse("layer_types", "full_attention of each block");
  }
  RETURN_IF_ERROR(ReadRotary(members, "rope_theta", "partial_rotary_factor", &model.rotary));
  if (!overrides.dropout.has_value()) {
    double dropout = 0;
    members.Number("attention_dropout", 0, 1, "a number from 0 to 1", &dropout);
    // Ours is of embeddings and updates, too.
    if (dropout != 0) members.Refuse("attention_dropout", "0. Give model.dropout");
  }
  RETURN_IF_ERROR(members.status());
  return ReadCommon(kAttentionDropout, /*keeps_dropout=*/true, members, overrides, config);
}

// A Llama may have biases of all linears of blocks.
absl::Status ReadBiasedLlama(const Family& family, JsonMembers& members,
                             const ImportOverrides& overrides, FamilyConfig* config) {
  bool attention = false, feed_forward = false;
  members.Boolean("attention_bias", &attention);
  members.Boolean("mlp_bias", &feed_forward);
  if (attention != feed_forward) {
    members.Refuse("mlp_bias", absl::StrCat(attention ? "true" : "false", ", as attention_bias"));
  }
  config->model.bias = attention;
  return ReadLlama(family, members, overrides, config);
}

absl::Status ReadNeox(const Family&, JsonMembers& members, const ImportOverrides& overrides,
                      FamilyConfig* config) {
  ModelConfig& model = config->model;
  RETURN_IF_ERROR(members.status());
  ReadEps("layer_norm_eps", members, &model);
  members.Boolean("use_parallel_residual", &model.parallel);
  model.parallel_norms = model.parallel;
  RETURN_IF_ERROR(ReadRotary(members, "rotary_emb_base", "rotary_pct", &model.rotary));
  return ReadCommon(kNeoxDropouts, /*keeps_dropout=*/false, members, overrides, config);
}

void WriteCommon(const ModelConfig& model, nlohmann::ordered_json* config) {
  (*config)["rope_parameters"] = {{"rope_type", "default"},
                                  {"rope_theta", model.rotary.theta},
                                  {"partial_rotary_factor", model.rotary.share}};
  (*config)[kRecordKey] = {{"backward", NameOf(model.norm.backward)},
                           {"init", NameOf(model.init.kind)},
                           {"streams", NameOf(model.init.streams)},
                           {"outputs", NameOf(model.init.outputs)},
                           {"loss", NameOf(model.loss)},
                           {"dropout", model.dropout}};
}

void WriteLlama(const Family&, const ModelConfig& model, nlohmann::ordered_json* config) {
  (*config)["rms_norm_eps"] = model.norm.eps;
  (*config)["num_key_value_heads"] = KvHeads(model);
  (*config)["head_dim"] = HeadSize(model);
  (*config)["rope_theta"] = model.rotary.theta;
  (*config)["attention_dropout"] = 0;
  WriteCommon(model, config);
}

void WriteBiasedLlama(const Family& family, const ModelConfig& model,
                      nlohmann::ordered_json* config) {
  (*config)["attention_bias"] = (*config)["mlp_bias"] = model.bias;
  WriteLlama(family, model, config);
}

void WriteNeox(const Family&, const ModelConfig& model, nlohmann::ordered_json* config) {
  (*config)["layer_norm_eps"] = model.norm.eps;
  (*config)["use_parallel_residual"] = model.parallel;
  (*config)["rotary_emb_base"] = model.rotary.theta;
  (*config)["rotary_pct"] = model.rotary.share;
  for (const absl::string_view key : kNeoxDropouts) (*config)[std::string(key)] = model.dropout;
  WriteCommon(model, config);
}

struct StackedModule {
  Module module;
  std::vector<absl::string_view> names;  // of the linears that are stacked in its parameter
};

const std::vector<absl::string_view>& NamesOf(absl::Span<const StackedModule> modules,
                                              Module module) {
  return std::find_if(modules.begin(), modules.end(),
                      [&](const StackedModule& entry) { return entry.module == module; })
      ->names;
}

// Returns a tensor's name: "layers.3.mlp.up_proj.weight".
std::string NameOfTensor(absl::string_view name, const ParameterInfo& parameter) {
  const absl::string_view part = parameter.role == ParameterRole::kBias ? "bias" : "weight";
  return parameter.block < 0 ? absl::StrCat(name, ".", part)
                             : absl::StrCat("layers.", parameter.block, ".", name, ".", part);
}

std::vector<StoredTensor> LlamaTensors(const ModelConfig& model, const ParameterInfo& parameter) {
  static const auto* const kModules = new std::vector<StackedModule>{
      {Module::kTokenEmbedding, {"embed_tokens"}},
      {Module::kAttentionNorm, {"input_layernorm"}},
      {Module::kQkv, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
      {Module::kQueryNorm, {"self_attn.q_norm"}},
      {Module::kKeyNorm, {"self_attn.k_norm"}},
      {Module::kProjection, {"self_attn.o_proj"}},
      {Module::kFeedForwardNorm, {"post_attention_layernorm"}},
      {Module::kUp, {"mlp.gate_proj", "mlp.up_proj"}},
      {Module::kDown, {"mlp.down_proj"}},
      {Module::kFinalNorm, {"norm"}},
      {Module::kHead, {"lm_head"}}};
  const auto& names = NamesOf(*kModules, parameter.module);
  std::vector<int64_t> rows = StackedRows(model, parameter);
  std::vector<StoredTensor> stored;
  int64_t first = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<int64_t> shape = parameter.shape;
    shape[0] = rows[i];
    stored.push_back({NameOfTensor(names[i], parameter), std::move(shape), first});
    first += rows[i];
  }
  return stored;
}

std::vector<StoredTensor> NeoxTensors(const ModelConfig& model, const ParameterInfo& parameter) {
  static const auto* const kModules =
      new std::vector<StackedModule>{{Module::kTokenEmbedding, {"embed_in"}},
                                     {Module::kAttentionNorm, {"input_layernorm"}},
                                     {Module::kQkv, {"attention.query_key_value"}},
                                     {Module::kProjection, {"attention.dense"}},
                                     {Module::kFeedForwardNorm, {"post_attention_layernorm"}},
                                     {Module::kUp, {"mlp.dense_h_to_4h"}},
                                     {Module::kDown, {"mlp.dense_4h_to_h"}},
                                     {Module::kFinalNorm, {"final_layer_norm"}},
                                     {Module::kHead, {"embed_out"}}};
  const absl::string_view name = NamesOf(*kModules, parameter.module)[0];
  StoredTensor stored = {NameOfTensor(name, parameter), parameter.shape};
  if (parameter.module == Module::kQkv) {  // [H, 3, e] for queries, keys and values [3, H, e]
    stored.a = model.heads;
    stored.b = 3;
  }
  return {stored};
}

ModelConfig Untied(ModelConfig model) {
  model.tied_head = false;
  return model;
}

constexpr Family LlamaLike(absl::string_view type, absl::string_view title,
                           absl::string_view architecture) {
  Family family = {};
  family.type = type;
  family.title = title;
  family.architecture = architecture;
  family.prefix = "model.";
  family.sizes = kRotarySizes;
  family.flags = kNoWindow;
  family.activation_key = "hidden_act";
  family.default_activation = "silu";
  family.activations = kGated;
  family.base = LlamaBase;
  family.open = "attention.kv_heads attention.head_size rotary.theta";
  family.check = CheckLlamaLike;
  family.read = ReadLlama;
  family.write = WriteLlama;
  family.tensors = LlamaTensors;
  family.widest = Untied;
  family.constants = kLlamaConstants;
  return family;
}

constexpr Family MakeLlama() {
  Family family = LlamaLike("llama", "Llama", "LlamaForCausalLM");
  family.flags = kCausal;
  family.check = CheckLlama;
  family.open = "attention.kv_heads attention.head_size rotary.theta bias";
  family.read = ReadBiasedLlama;
  family.write = WriteBiasedLlama;
  return family;
}

constexpr Family MakeQwen2() {
  Family family = LlamaLike("qwen2", "Qwen2", "Qwen2ForCausalLM");
  family.base = Qwen2Base;
  return family;
}

constexpr Family MakeQwen3() {
  Family family = LlamaLike("qwen3", "Qwen3", "Qwen3ForCausalLM");
  family.flags = kNoBias;
  family.base = Qwen3Base;
  family.open = "attention.kv_heads attention.head_size rotary.theta attention.qk_norm.scale";
  return family;
}

constexpr Family MakeGptNeox() {
  Family family = {};
  family.type = "gpt_neox";
  family.title = "GPT-NeoX";
  family.architecture = "GPTNeoXForCausalLM";
  family.prefix = "gpt_neox.";
  family.sizes = kRotarySizes;
  family.flags = kBias;
  family.activation_key = "hidden_act";
  family.default_activation = "gelu";
  family.activations = kActivationNames;
  family.base = NeoxBase;
  family.open = "rotary.theta rotary.share parallel parallel_norms";
  family.check = CheckNeox;
  family.read = ReadNeox;
  family.write = WriteNeox;
  family.tensors = NeoxTensors;
  family.widest = Untied;
  family.constants = kNeoxConstants;
  return family;
}

}  // namespace

constexpr Family kLlama = MakeLlama();
constexpr Family kQwen2 = MakeQwen2();
constexpr Family kQwen3 = MakeQwen3();
constexpr Family kGptNeox = MakeGptNeox();

}  // namespace ablate::engine
