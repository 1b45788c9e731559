#include "server/engine/core/pretrained/gpt2_source.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/pretrained/gpt2_config.h"
#include "server/engine/core/pretrained/gpt2_family.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

template <typename... Parts>
absl::Status BadModel(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::string_view YesNo(bool yes) { return yes ? "true" : "false"; }

// Returns a model with every tensor that the model could have.
ModelConfig WithAllTensors(ModelConfig model) {
  model.norm = Gpt2Model().norm;
  model.tied_head = false;
  return model;
}

absl::Status CheckKnown(const ModelConfig& model, const Gpt2Files& files) {
  absl::flat_hash_set<std::string> known;
  for (const ParameterInfo& parameter : MakeLayout(WithAllTensors(model)).parameters) {
    known.insert(Gpt2TensorName(parameter));
  }
  // Constants of the attention mask.
  for (int block = 0; block < model.layers; ++block) {
    known.insert(absl::StrCat("h.", block, ".attn.bias"));
    known.insert(absl::StrCat("h.", block, ".attn.masked_bias"));
  }
  const Gpt2Tensor* unknown = nullptr;
  for (const auto& [name, tensor] : files.tensors) {
    if (known.contains(name)) continue;
    if (unknown == nullptr || tensor.view.name < unknown->view.name) unknown = &tensor;
  }
  if (unknown == nullptr) return absl::OkStatus();
  return BadModel(unknown->file, ": tensor ", Quoted(unknown->view.name),
                  " isn't one of a GPT-2 with ", model.layers,
                  " layers; expected only those of GPT2LMHeadModel.");
}

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
  return BadModel(
      "tensor ", is_there ? other : name, " is missing, but ", is_there ? name : other,
      " is there; expected the same tensors in every block, and the same of every norm.");
}

absl::StatusOr<NormTensors> FindNorms(const ModelConfig& model, const Gpt2Files& files) {
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
    return BadModel(kGpt2ConfigName, ": ", kGpt2RecordKey, ".norm.", field, " is ", YesNo(recorded),
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

absl::Status CheckNormOverride(const Gpt2Config& config, std::optional<NormKind> given,
                               const NormTensors& found) {
  if (!given.has_value()) return absl::OkStatus();
  const auto refuse = [&](absl::string_view why, absl::string_view expected) {
    return BadModel("model.norm.kind: ", NameOf(*given), " is given, but ", why, "; expected ",
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

// Sets kind, bias and sites of the norms, and notes their origin.
absl::Status SetNorms(const Gpt2Overrides& overrides, const Gpt2Files& files, Gpt2Config* config) {
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
    return BadModel(
        "model.norm.kind: norms have a weight and no bias, which can be either kind; expected rms, "
        "or layer for a LayerNorm without bias. Give model.norm.kind.");
  }
  return absl::OkStatus();
}

// Sets tied_head, which is tie_word_embeddings before. A tied head that is there alone becomes the
// embedding, too.
void SetHead(Gpt2Files* files, Gpt2Config* config) {
  const auto head = files->tensors.find("lm_head.weight");
  const auto embedding = files->tensors.find("wte.weight");
  bool& tied = config->model.tied_head;
  if (!tied || head == files->tensors.end()) return;
  if (embedding == files->tensors.end()) {
    const Gpt2Tensor shared = head->second;
    files->tensors.emplace("wte.weight", shared);
    config->notes.emplace_back(
        "The token embedding is lm_head.weight, because the head is tied and wte.weight is "
        "missing.");
    return;
  }
  const TensorView& a = head->second.view;
  const TensorView& b = embedding->second.view;
  tied = a.type == b.type && a.shape == b.shape && a.bytes == b.bytes;
  if (tied) return;
  config->notes.emplace_back(
      "model.tied_head is false, because lm_head.weight differs from wte.weight, against "
      "tie_word_embeddings.");
}

std::string ShownShape(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Checks that each parameter has its tensor.
absl::Status CheckTensors(const ModelConfig& model, const Gpt2Files& files) {
  for (const ParameterInfo& parameter : MakeLayout(model).parameters) {
    const std::string name = Gpt2TensorName(parameter);
    const auto found = files.tensors.find(name);
    if (found == files.tensors.end()) {
      return BadModel("tensor ", name, " is missing; expected ",
                      ShownShape(Gpt2TensorShape(parameter)), ".");
    }
    const auto& [file, view] = found->second;
    const std::vector<int64_t> shape = Gpt2TensorShape(parameter);
    if (view.shape != shape) {
      return BadModel(file, ": tensor ", Quoted(view.name), " has shape ", ShownShape(view.shape),
                      "; expected ", ShownShape(shape), ", by ", kGpt2ConfigName, ".");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Gpt2Source> ReadGpt2Source(absl::Span<const FileView> files,
                                          const Gpt2Overrides& overrides) {
  ASSIGN_OR_RETURN(Gpt2Files opened, OpenGpt2Files(files));
  ASSIGN_OR_RETURN(Gpt2Config config, ReadGpt2Config(opened.config, overrides));
  absl::Status status = CheckKnown(config.model, opened);
  if (status.ok()) status = SetNorms(overrides, opened, &config);
  if (!status.ok()) return status;
  SetHead(&opened, &config);
  status = CheckTensors(config.model, opened);
  if (!status.ok()) return status;
  return Gpt2Source{config.model, std::move(opened), std::move(config.notes)};
}

}  // namespace ablate::engine
