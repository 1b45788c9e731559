#include "server/engine/core/pretrained/gpt2_norms.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

template <typename... Parts>
absl::Status BadNorms(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::string_view YesNo(bool yes) { return yes ? "true" : "false"; }

// The tensors of norms, which are the same at all blocks and sites.
struct NormTensors {
  NormConfig sites;     // only the members of kGpt2NormSites are set
  bool any = false;     // a site has a norm
  bool bias = false;    // norms have a bias
  std::string example;  // a norm that is there: "ln_1 of block 0"
};

absl::Status CompareNorms(const std::string& name, bool is_there, const std::string& other,
                          bool other_is_there) {
  if (is_there == other_is_there) return absl::OkStatus();
  return BadNorms(
      "tensor ", is_there ? other : name, " is missing, but ", is_there ? name : other,
      " is there; expected the same tensors in every block, and the same of every norm.");
}

absl::StatusOr<NormTensors> FindNorms(const ModelConfig& model, const TensorFiles& files) {
  NormTensors found;
  std::string first_bias;  // of the first norm that is there
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    const int first = site.in_block ? 0 : -1, end = site.in_block ? model.layers : 0;
    const std::string first_weight = Gpt2TensorName(site.module, first, "weight");
    const bool has_norm = files.tensors.contains(first_weight);
    found.sites.*site.member = has_norm;
    for (int block = first; block < end; ++block) {
      const std::string weight = Gpt2TensorName(site.module, block, "weight");
      const std::string bias = Gpt2TensorName(site.module, block, "bias");
      const bool has_bias = files.tensors.contains(bias);
      absl::Status same =
          CompareNorms(weight, files.tensors.contains(weight), first_weight, has_norm);
      if (same.ok() && !has_norm && has_bias) same = CompareNorms(weight, false, bias, true);
      if (same.ok() && has_norm && !found.any) {
        found.any = true;
        found.bias = has_bias;
        first_bias = bias;
      }
      if (same.ok() && has_norm) same = CompareNorms(bias, has_bias, first_bias, found.bias);
      if (!same.ok()) return same;
    }
  }
  return found;
}

// Checks tensors against the sites and the bias that config.json keeps.
absl::Status CheckRecord(const ModelConfig& model, const NormTensors& found) {
  const auto differs = [](absl::string_view field, bool recorded, absl::string_view tensors) {
    return BadNorms(kConfigName, ": ", kRecordKey, ".norm.", field, " is ", YesNo(recorded),
                    ", but the tensors have ", tensors, "; expected both to agree.");
  };
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    const bool has_norm = found.sites.*site.member;
    if (HasGpt2Norm(model, site) == has_norm) continue;
    return differs(site.name, HasGpt2Norm(model, site), has_norm ? "that norm" : "no such norm");
  }
  if (!found.any || model.norm.bias == found.bias) return absl::OkStatus();
  return differs("bias", model.norm.bias, found.bias ? "biases of norms" : "no biases of norms");
}

absl::Status CheckNormOverride(const FamilyConfig& config, std::optional<NormKind> given,
                               const NormTensors& found) {
  if (!given.has_value()) return absl::OkStatus();
  const auto refuse = [&](absl::string_view why, absl::string_view expected) {
    return BadNorms("model.norm.kind: ", NameOf(*given), " is given, but ", why, "; expected ",
                    expected, ".");
  };
  if (*given != NormKind::kLayer && *given != NormKind::kRms) {
    return refuse("GPT-2 has no such norm", "layer or rms");
  }
  if (config.has_record && *given != config.model.norm.kind) {
    return refuse("config.json has another kind", NameOf(config.model.norm.kind));
  }
  if (found.any && found.bias && *given == NormKind::kRms) {
    return refuse("the norms have biases", "layer");
  }
  return absl::OkStatus();
}

}  // namespace

bool HasGpt2Norm(const ModelConfig& model, const Gpt2NormSite& site) {
  if (!site.in_block) return model.norm.*site.member;
  return model.norm.*site.member && model.norm.placement != NormPlacement::kNone;
}

absl::Status InferGpt2Norms(const ImportOverrides& overrides, const TensorFiles& files,
                            FamilyConfig* config) {
  ASSIGN_OR_RETURN(const NormTensors found, FindNorms(config->model, files));
  RETURN_IF_ERROR(CheckNormOverride(*config, overrides.norm_kind, found));
  NormConfig& norm = config->model.norm;
  const auto note = [&](const auto&... parts) {
    config->notes.push_back(absl::StrCat("model.norm.", parts...));
  };
  if (config->has_record) {
    note("kind is ", NameOf(norm.kind), ", as config.json says.");
    return CheckRecord(config->model, found);
  }
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    norm.*site.member = found.sites.*site.member;
    if (norm.*site.member) continue;
    note(site.name, " is false, because there is no ",
         Gpt2TensorName(site.module, site.in_block ? 0 : -1, "weight"), ".");
  }
  if (!found.any) {
    note("kind is ", NameOf(norm.kind), ", without effect, because there are no norms.");
    return absl::OkStatus();
  }
  norm.bias = found.bias;
  if (found.bias) {
    note("kind is layer, because norms have a weight and a bias.");
  } else if (overrides.norm_kind.has_value()) {
    norm.kind = *overrides.norm_kind;
    note("kind is ", NameOf(norm.kind), ", as given.");
    note("bias is false, because norms have no bias.");
  } else {
    return BadNorms(
        "model.norm.kind: norms have a weight and no bias, which can be either kind; expected rms, "
        "or layer for a LayerNorm without bias. Give model.norm.kind.");
  }
  return absl::OkStatus();
}

}  // namespace ablate::engine
