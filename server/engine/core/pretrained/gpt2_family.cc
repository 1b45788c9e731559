#include "server/engine/core/pretrained/gpt2_family.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

// A setting that GPT-2 fixes: its value in a model and in GPT-2.
struct FixedSetting {
  absl::string_view field;
  std::string value;
  std::string expected;
};

std::string BoolName(bool value) { return value ? "true" : "false"; }

// Returns all settings that GPT-2 fixes. Names every member of the config, so that a new one
// doesn't compile until it is placed here. Not fixed: sizes, dropout, tied_head, activation and
// norms, which have checks of their own; init and loss, which don't affect a trained model.
std::vector<FixedSetting> FixedSettings(const ModelConfig& model) {
  const ModelConfig family = Gpt2Model();
  const auto& [vocabulary, layers, width, heads, context, positions, bias, residual, residual_scale,
               dropout, tied_head, head_bias, attention, activation, hidden, norm, init, loss] =
      model;
  const auto& [kind, causal, score_bias] = attention;
  const auto& [norm_kind, deviation, placement, attention_norm, feed_forward_norm, final_norm, eps,
               gain, norm_bias, backward] = norm;
  return {
      {"model.positions", std::string(NameOf(positions)), std::string(NameOf(family.positions))},
      {"model.bias", BoolName(bias), BoolName(family.bias)},
      {"model.residual", BoolName(residual), BoolName(family.residual)},
      {"model.residual_scale", text::ShortestDecimal(residual_scale),
       text::ShortestDecimal(family.residual_scale)},
      {"model.head_bias", BoolName(head_bias), BoolName(family.head_bias)},
      {"model.attention.kind", std::string(NameOf(kind)),
       std::string(NameOf(family.attention.kind))},
      {"model.attention.causal", BoolName(causal), BoolName(family.attention.causal)},
      {"model.attention.score_bias", text::ShortestDecimal(score_bias),
       text::ShortestDecimal(family.attention.score_bias)},
      {"model.norm.deviation", std::string(NameOf(deviation)),
       std::string(NameOf(family.norm.deviation))},
      {"model.norm.gain", BoolName(gain), BoolName(family.norm.gain)}};
}

template <typename Value>
absl::Status NotGpt2(absl::string_view field, const Value& value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": GPT-2 has no such model (", value, "); expected ", expected, "."));
}

absl::Status CheckGpt2Norm(const NormConfig& norm) {
  if (norm.kind != NormKind::kLayer && norm.kind != NormKind::kRms) {
    return NotGpt2("model.norm.kind", NameOf(norm.kind), "layer or rms");
  }
  if (norm.placement != NormPlacement::kPre && norm.placement != NormPlacement::kNone) {
    return NotGpt2("model.norm.placement", NameOf(norm.placement), "pre or none");
  }
  if (norm.kind == NormKind::kRms && norm.bias) {
    return NotGpt2("model.norm.bias", "true with norm kind rms", "false");
  }
  if (!(norm.eps >= 0 && norm.eps <= kMaxGpt2Eps)) {
    return NotGpt2("model.norm.eps", norm.eps, absl::StrCat("0 to ", kMaxGpt2Eps));
  }
  return absl::OkStatus();
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

}  // namespace

ModelConfig Gpt2Model() {
  ModelConfig model;
  model.positions = Positions::kLearned;
  model.bias = true;
  model.residual = true;
  model.residual_scale = 1;
  model.dropout = 0.1;
  model.tied_head = true;
  model.head_bias = false;
  model.attention = {AttentionKind::kSoftmax, /*causal=*/true, /*score_bias=*/0};
  model.activation = Activation::kGeluTanh;
  model.norm = NormConfig();  // LayerNorm with gain and bias, before each sublayer and the head
  model.init = {InitKind::kGpt2, InitStreams::kByName};
  model.loss = LossPositions::kAll;
  return model;
}

absl::Status CheckGpt2Model(const ModelConfig& model) {
  for (const FixedSetting& setting : FixedSettings(model)) {
    if (setting.value != setting.expected) {
      return NotGpt2(setting.field, setting.value, setting.expected);
    }
  }
  for (const Gpt2Size& size : kGpt2Sizes) {
    const int value = model.*size.member;
    if (value < 1 || value > size.max) {
      return NotGpt2(size.field, value, absl::StrCat("1 to ", size.max));
    }
  }
  if (model.width % model.heads != 0) {
    return NotGpt2("model.width", model.width,
                   absl::StrCat("a multiple of ", model.heads, " heads"));
  }
  if (!(model.dropout >= 0 && model.dropout < 1)) {
    return NotGpt2("model.dropout", model.dropout, "at least 0 and below 1");
  }
  const bool has_activation = std::any_of(
      std::begin(kGpt2Activations), std::end(kGpt2Activations),
      [&](const Gpt2Activation& known) { return known.activation == model.activation; });
  if (!has_activation) {
    return NotGpt2("model.feed_forward.activation", NameOf(model.activation),
                   "gelu_tanh, gelu, relu or silu");
  }
  RETURN_IF_ERROR(CheckGpt2Norm(model.norm));
  const int64_t parameters = MakeLayout(model).size;
  if (parameters > kMaxGpt2Parameters) {
    return NotGpt2("model", absl::StrCat(parameters, " parameters"),
                   absl::StrCat("at most ", kMaxGpt2Parameters));
  }
  return absl::OkStatus();
}

bool HasGpt2Norm(const ModelConfig& model, const Gpt2NormSite& site) {
  if (!site.in_block) return model.norm.*site.member;
  return model.norm.*site.member && model.norm.placement != NormPlacement::kNone;
}

bool IsPlainGpt2(const ModelConfig& model) {
  const bool at_all_sites =
      std::all_of(std::begin(kGpt2NormSites), std::end(kGpt2NormSites),
                  [&](const Gpt2NormSite& site) { return HasGpt2Norm(model, site); });
  return at_all_sites && model.norm.kind == NormKind::kLayer && model.norm.bias;
}

std::string Gpt2TensorName(Module module, int block, absl::string_view part) {
  const auto* known =
      std::find_if(std::begin(kGpt2Modules), std::end(kGpt2Modules),
                   [&](const Gpt2ModuleName& entry) { return entry.module == module; });
  const std::string name = absl::StrCat(known->name, ".", part);
  return block < 0 ? name : absl::StrCat("h.", block, ".", name);
}

std::string Gpt2TensorName(const ParameterInfo& parameter) {
  const bool is_bias = parameter.role == ParameterRole::kBias;
  return Gpt2TensorName(parameter.module, parameter.block, is_bias ? "bias" : "weight");
}

std::vector<int64_t> Gpt2TensorShape(const ParameterInfo& parameter) {
  std::vector<int64_t> shape = parameter.shape;
  if (IsTransposed(parameter)) std::reverse(shape.begin(), shape.end());
  return shape;
}

}  // namespace ablate::engine
