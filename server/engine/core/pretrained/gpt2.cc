// GPT-2 and its variants as a family of pretrained models.
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/pretrained/family.h"
#include "server/engine/core/pretrained/gpt2_norms.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

constexpr ConfigSize kGpt2Sizes[] = {
    {"vocab_size", "model.vocabulary", &ModelConfig::vocabulary, 1'000'000},
    {"n_positions", "model.context", &ModelConfig::context, 8192, "max_position_embeddings",
     "n_ctx"},
    {"n_embd", "model.width", &ModelConfig::width, 8192, "hidden_size"},
    {"n_layer", "model.layers", &ModelConfig::layers, 200, "num_hidden_layers"},
    {"n_head", "model.heads", &ModelConfig::heads, 256, "num_attention_heads"},
    {"n_inner", "model.feed_forward.hidden", &ModelConfig::hidden, 65536}};

constexpr FixedFlag kGpt2Flags[] = {{"scale_attn_weights", true},
                                    {"scale_attn_by_inverse_layer_idx", false},
                                    {"add_cross_attention", false},
                                    {"is_causal", true}};

constexpr absl::string_view kGpt2Dropouts[] = {"embd_pdrop", "attn_pdrop", "resid_pdrop"};
constexpr char kGpt2Eps[] = "layer_norm_epsilon";

// The attention's mask.
constexpr absl::string_view kGpt2Constants[] = {"h.#.attn.bias", "h.#.attn.masked_bias"};

ModelConfig Gpt2Base() {
  ModelConfig model;
  model.positions = Positions::kLearned;
  model.bias = true;
  model.residual = true;
  model.residual_scale = 1;
  model.dropout = 0.1;
  model.tied_head = true;
  model.head_bias = false;
  model.attention = AttentionConfig();  // causal softmax
  model.activation = Activation::kGeluTanh;
  model.norm = NormConfig();  // LayerNorm with gain and bias, before each sublayer and the head
  model.init.kind = InitKind::kGpt2;
  model.loss = LossPositions::kAll;
  return model;
}

absl::Status CheckGpt2(const Family& family, const ModelConfig& model) {
  const NormConfig& norm = model.norm;
  if (norm.kind != NormKind::kLayer && norm.kind != NormKind::kRms) {
    return NotOfFamily(family, "model.norm.kind", NameOf(norm.kind), "layer or rms");
  }
  if (norm.placement != NormPlacement::kPre && norm.placement != NormPlacement::kNone) {
    return NotOfFamily(family, "model.norm.placement", NameOf(norm.placement), "pre or none");
  }
  if (norm.kind == NormKind::kRms && norm.bias) {
    return NotOfFamily(family, "model.norm.bias", "true with norm kind rms", "false");
  }
  return absl::OkStatus();
}

// Returns true if transformers' GPT2LMHeadModel computes the model.
bool IsPlainGpt2(const ModelConfig& model) {
  const bool at_all_sites =
      std::all_of(std::begin(kGpt2NormSites), std::end(kGpt2NormSites),
                  [&](const Gpt2NormSite& site) { return HasGpt2Norm(model, site); });
  return at_all_sites && model.norm.kind == NormKind::kLayer && model.norm.bias;
}

// Reads the member that WriteGpt2 adds.
absl::Status ReadGpt2Record(const nlohmann::json& record, FamilyConfig* config) {
  const auto object_of = [&](const char* key) -> const nlohmann::json* {
    const auto found = record.is_object() ? record.find(key) : record.end();
    return record.is_object() && found != record.end() && found->is_object() ? &*found : nullptr;
  };
  const nlohmann::json* norm = object_of("norm");
  const nlohmann::json* init = object_of("init");
  if (norm == nullptr || init == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kConfigName, ": ", kRecordKey,
                     " lacks the objects norm and init; expected both. Export the model again."));
  }
  ModelConfig& model = config->model;
  const auto prefix = [](absl::string_view name) { return absl::StrCat(kRecordKey, name, "."); };
  JsonMembers norms(kConfigName, *norm, prefix(".norm"));
  norms.Value("kind", &model.norm.kind);
  norms.Value("placement", &model.norm.placement);
  norms.Value("backward", &model.norm.backward);
  norms.Require("bias", "true or false");
  norms.Boolean("bias", &model.norm.bias);
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    norms.Require(site.name, "true or false");
    norms.Boolean(site.name, &(model.norm.*site.member));
  }
  if (!norms.status().ok()) return norms.status();
  JsonMembers inits(kConfigName, *init, prefix(".init"));
  inits.Value("kind", &model.init.kind);
  inits.Value("streams", &model.init.streams);
  if (!inits.status().ok()) return inits.status();
  JsonMembers others(kConfigName, record, prefix(""));
  others.Value("loss", &model.loss);
  config->has_record = true;
  return others.status();
}

nlohmann::json Gpt2RecordOf(const ModelConfig& model) {
  nlohmann::json norm = {{"kind", NameOf(model.norm.kind)},
                         {"placement", NameOf(model.norm.placement)},
                         {"backward", NameOf(model.norm.backward)},
                         {"bias", model.norm.bias}};
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    norm[std::string(site.name)] = model.norm.*site.member;
  }
  return {{"norm", std::move(norm)},
          {"init", {{"kind", NameOf(model.init.kind)}, {"streams", NameOf(model.init.streams)}}},
          {"loss", NameOf(model.loss)}};
}

absl::Status ReadGpt2(const Family&, JsonMembers& members, const ImportOverrides& overrides,
                      FamilyConfig* config) {
  ReadEps(kGpt2Eps, members, &config->model);
  RETURN_IF_ERROR(ReadDropout(kGpt2Dropouts, Gpt2Base().dropout, members, overrides, config));
  const nlohmann::json* record = members.Find(kRecordKey);
  return record == nullptr ? absl::OkStatus() : ReadGpt2Record(*record, config);
}

void WriteGpt2(const Family& family, const ModelConfig& model, nlohmann::ordered_json* config) {
  if (!IsPlainGpt2(model)) {
    (*config)["model_type"] = family.variant_type;
    (*config)["architectures"] = {"AblateGPT2LMHeadModel"};
  }
  for (const absl::string_view key : kGpt2Dropouts) (*config)[std::string(key)] = model.dropout;
  (*config)[kGpt2Eps] = model.norm.eps;
  (*config)[kRecordKey] = Gpt2RecordOf(model);
}

struct Gpt2ModuleName {
  Module module;
  absl::string_view name;
};

constexpr Gpt2ModuleName kGpt2Modules[] = {{Module::kTokenEmbedding, "wte"},
                                           {Module::kPositionEmbedding, "wpe"},
                                           {Module::kAttentionNorm, "ln_1"},
                                           {Module::kQkv, "attn.c_attn"},
                                           {Module::kProjection, "attn.c_proj"},
                                           {Module::kFeedForwardNorm, "ln_2"},
                                           {Module::kUp, "mlp.c_fc"},
                                           {Module::kDown, "mlp.c_proj"},
                                           {Module::kFinalNorm, "ln_f"},
                                           {Module::kHead, "lm_head"}};

std::vector<StoredTensor> Gpt2Tensors(const ModelConfig&, const ParameterInfo& parameter) {
  StoredTensor stored;
  const bool is_bias = parameter.role == ParameterRole::kBias;
  stored.name = Gpt2TensorName(parameter.module, parameter.block, is_bias ? "bias" : "weight");
  stored.shape = parameter.shape;
  if (parameter.role == ParameterRole::kWeight) {  // [in, out]
    std::reverse(stored.shape.begin(), stored.shape.end());
    stored.a = stored.shape[0];
    stored.b = stored.shape[1];
  }
  return {stored};
}

ModelConfig WidestGpt2(ModelConfig model) {
  model.norm = Gpt2Base().norm;
  model.tied_head = false;
  return model;
}

}  // namespace

std::string Gpt2TensorName(Module module, int block, absl::string_view part) {
  const auto* known =
      std::find_if(std::begin(kGpt2Modules), std::end(kGpt2Modules),
                   [&](const Gpt2ModuleName& entry) { return entry.module == module; });
  const std::string name = absl::StrCat(known->name, ".", part);
  return block < 0 ? name : absl::StrCat("h.", block, ".", name);
}

constexpr Family kGpt2 = {
    .type = "gpt2",
    .title = "GPT-2",
    .architecture = "GPT2LMHeadModel",
    .prefix = "transformer.",
    .variant_type = "ablate_gpt2",
    .sizes = kGpt2Sizes,
    .hidden_is_derived = true,
    .flags = kGpt2Flags,
    .activation_key = "activation_function",
    .default_activation = "gelu_new",
    .activations = kActivationNames,
    .base = Gpt2Base,
    .open = "norm.kind norm.placement norm.attention norm.feed_forward norm.final norm.bias",
    .check = CheckGpt2,
    .read = ReadGpt2,
    .infer = InferGpt2Norms,
    .write = WriteGpt2,
    .tensors = Gpt2Tensors,
    .widest = WidestGpt2,
    .constants = kGpt2Constants,
};

}  // namespace ablate::engine
