#include "server/engine/model/model_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/layout.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kNoNorm = "none";

Json NormSites(const ModelConfig& model) {
  const absl::string_view kind = NameOf(model.norm.kind);
  Json sites = Json::object();
  for (int i = 0; i < model.layers; ++i) {
    const std::string block = absl::StrCat("block.", i);
    sites[block + ".attention.norm"] = HasAttentionNorm(model.norm) ? kind : kNoNorm;
    sites[block + ".feed_forward.norm"] = HasFeedForwardNorm(model.norm) ? kind : kNoNorm;
  }
  sites["final_norm"] = model.norm.final ? kind : kNoNorm;
  return sites;
}

}  // namespace

std::string ModelJson(const ModelConfig& model) {
  const Json norm = {
      {"kind", NameOf(model.norm.kind)},   {"placement", NameOf(model.norm.placement)},
      {"attention", model.norm.attention}, {"feed_forward", model.norm.feed_forward},
      {"final", model.norm.final},         {"eps", model.norm.eps},
      {"gain", model.norm.gain},           {"bias", model.norm.bias}};
  const Json json = {
      {"vocabulary", model.vocabulary},
      {"layers", model.layers},
      {"width", model.width},
      {"heads", model.heads},
      {"context", model.context},
      {"positions", NameOf(model.positions)},
      {"bias", model.bias},
      {"residual", model.residual},
      {"tied_head", model.tied_head},
      {"head_bias", model.head_bias},
      {"causal", model.causal},
      {"activation", NameOf(model.activation)},
      {"hidden", model.hidden},
      {"norm", norm},
      {"norm_sites", NormSites(model)},
      {"init", {{"kind", NameOf(model.init.kind)}, {"streams", NameOf(model.init.streams)}}},
      {"loss", NameOf(model.loss)}};
  return json.dump();
}

}  // namespace ablate::engine
