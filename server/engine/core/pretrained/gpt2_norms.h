// Knows the norms that a GPT-2 or a variant of it may have, and infers them from its tensors.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_NORMS_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_NORMS_H_

#include <string>

#include "absl/status/status.h"
#include "server/engine/core/pretrained/family.h"

namespace ablate::engine {

// A norm of GPT-2, and the member that says if the model has it.
struct Gpt2NormSite {
  Module module;
  absl::string_view name;
  bool NormConfig::*member;
  bool in_block;
};
inline constexpr Gpt2NormSite kGpt2NormSites[] = {
    {Module::kAttentionNorm, "attention", &NormConfig::attention, true},
    {Module::kFeedForwardNorm, "feed_forward", &NormConfig::feed_forward, true},
    {Module::kFinalNorm, "final", &NormConfig::final, false}};

// Returns true if the model has the norm, in all blocks.
bool HasGpt2Norm(const ModelConfig& model, const Gpt2NormSite& site);

// Returns a module's tensor in GPT-2, without the prefix "transformer.": "h.3.attn.c_attn.weight".
// `block` is -1 for a module outside the blocks; `part` is "weight" or "bias".
std::string Gpt2TensorName(Module module, int block, absl::string_view part);

// Sets kind, bias and sites of the norms, and notes their origin. Returns INVALID_ARGUMENT if norms
// differ, if the kind stays open, and if the record or an override contradicts the tensors.
absl::Status InferGpt2Norms(const ImportOverrides& overrides, const TensorFiles& files,
                            FamilyConfig* config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_NORMS_H_
