// Names of the switches' settings, and the model as JSON.
#include "server/engine/model/model_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(NormKind kind) { return kind == NormKind::kLayer ? "layer" : "rms"; }

const char* NameOf(NormPlacement placement) {
  constexpr const char* kNames[] = {"pre", "post", "none"};
  return kNames[static_cast<int>(placement)];
}

const char* NameOf(Activation activation) {
  constexpr const char* kNames[] = {"relu", "gelu", "gelu_tanh"};
  return kNames[static_cast<int>(activation)];
}

const char* NameOf(InitKind kind) {
  constexpr const char* kNames[] = {"pytorch", "pytorch_mha", "xavier", "gpt2"};
  return kNames[static_cast<int>(kind)];
}

Json NormSites(const ModelConfig& model) {
  const char* kind = NameOf(model.norm.kind);
  Json sites = Json::object();
  for (int i = 0; i < model.layers; ++i) {
    const std::string block = absl::StrCat("block.", i);
    sites[block + ".attention.norm"] = HasAttentionNorm(model.norm) ? kind : "none";
    sites[block + ".feed_forward.norm"] = HasFeedForwardNorm(model.norm) ? kind : "none";
  }
  sites["final_norm"] = model.norm.final ? kind : "none";
  return sites;
}

}  // namespace

std::string ModelJson(const ModelConfig& model) {
  const Json norm = {
      {"kind", NameOf(model.norm.kind)},   {"placement", NameOf(model.norm.placement)},
      {"attention", model.norm.attention}, {"feed_forward", model.norm.feed_forward},
      {"final", model.norm.final},         {"eps", model.norm.eps},
      {"gain", model.norm.gain},           {"bias", model.norm.bias}};
  const bool by_name = model.init.streams == InitStreams::kByName;
  const Json json = {
      {"vocabulary", model.vocabulary},
      {"layers", model.layers},
      {"width", model.width},
      {"heads", model.heads},
      {"context", model.context},
      {"positions", model.positions == Positions::kLearned ? "learned" : "none"},
      {"bias", model.bias},
      {"residual", model.residual},
      {"tied_head", model.tied_head},
      {"head_bias", model.head_bias},
      {"causal", model.causal},
      {"activation", NameOf(model.activation)},
      {"hidden", model.hidden},
      {"norm", norm},
      {"norm_sites", NormSites(model)},
      {"init",
       {{"kind", NameOf(model.init.kind)}, {"streams", by_name ? "by_name" : "sequential"}}},
      {"loss", model.loss == LossPositions::kAll ? "all" : "last"}};
  return json.dump();
}

}  // namespace ablate::engine
