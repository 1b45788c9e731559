#include "server/engine/core/pretrained/gpt2_family.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

// The settings that GPT-2 leaves open: those with checks of their own below, those that don't
// affect a trained model, and the task's. It fixes all others.
constexpr absl::string_view kOpen =
    "vocabulary layers width heads context dropout tied_head feed_forward.activation "
    "feed_forward.hidden norm.kind norm.placement norm.attention norm.feed_forward norm.final "
    "norm.eps norm.bias norm.backward norm.attention_alpha norm.alpha init.kind init.streams "
    "init.outputs loss";

struct Setting {
  std::string field;
  std::string value;
};

// Lists all settings of a struct and of those below it. `path` is empty or ends with a dot.
template <HasFields Config>
void AddSettings(const std::string& path, const Config& config, std::vector<Setting>* settings) {
  ForEachField(config, [&](const char* name, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    const std::string field = path + name;
    if constexpr (HasFields<Value>) {
      AddSettings(field + ".", value, settings);
    } else if constexpr (std::is_enum_v<Value>) {
      settings->push_back({field, std::string(NameOf(value))});
    } else if constexpr (std::is_same_v<Value, bool>) {
      settings->push_back({field, value ? "true" : "false"});
    } else {
      settings->push_back({field, text::ShortestDecimal(value)});
    }
  });
}

std::vector<Setting> SettingsOf(const ModelConfig& model) {
  std::vector<Setting> settings;
  AddSettings("", model, &settings);
  return settings;
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
  model.attention = AttentionConfig();  // causal softmax
  model.activation = Activation::kGeluTanh;
  model.norm = NormConfig();  // LayerNorm with gain and bias, before each sublayer and the head
  model.init.kind = InitKind::kGpt2;
  model.loss = LossPositions::kAll;
  return model;
}

absl::Status CheckGpt2Model(const ModelConfig& model) {
  const std::vector<Setting> settings = SettingsOf(model), family = SettingsOf(Gpt2Model());
  const std::set<std::string> open = absl::StrSplit(kOpen, ' ');
  for (size_t i = 0; i < settings.size(); ++i) {
    const auto& [field, value] = settings[i];
    if (open.count(field) == 0 && value != family[i].value) {
      return NotGpt2(absl::StrCat("model.", field), value, family[i].value);
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
