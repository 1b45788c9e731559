// Describes the models that GPT-2's files can hold: settings, their names in config.json, and
// tensors. Reader and writer share these tables. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_FAMILY_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_FAMILY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// The value of model_type in config.json: of transformers' own models, and of models with other
// norms.
inline constexpr char kGpt2Type[] = "gpt2";
inline constexpr char kGpt2VariantType[] = "ablate_gpt2";

// The member of config.json that keeps what GPT-2's own members can't.
inline constexpr char kGpt2RecordKey[] = "ablate";

// A size in config.json, from 1 to `max`. The limits of the sizes are those of spec.proto.
struct Gpt2Size {
  absl::string_view key;
  absl::string_view field;  // of an experiment
  int ModelConfig::*member;
  int max;
  // Other names of the key, or empty: the one that transformers maps to it, and an old one.
  absl::string_view alias = "";
  absl::string_view old_key = "";
};
inline constexpr Gpt2Size kGpt2Sizes[] = {
    {"vocab_size", "model.vocabulary", &ModelConfig::vocabulary, 1'000'000},
    {"n_positions", "model.context", &ModelConfig::context, 8192, "max_position_embeddings",
     "n_ctx"},
    {"n_embd", "model.width", &ModelConfig::width, 8192, "hidden_size"},
    {"n_layer", "model.layers", &ModelConfig::layers, 200, "num_hidden_layers"},
    {"n_head", "model.heads", &ModelConfig::heads, 256, "num_attention_heads"},
    {"n_inner", "model.feed_forward.hidden", &ModelConfig::hidden, 65536}};

// The largest number of parameters.
inline constexpr int64_t kMaxGpt2Parameters = int64_t{1} << 31;

struct Gpt2Activation {
  absl::string_view name;
  Activation activation;
};
// All names that transformers has for these formulas. The first name of an activation is the one
// that is written.
inline constexpr Gpt2Activation kGpt2Activations[] = {{"gelu_new", Activation::kGeluTanh},
                                                      {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                      {"gelu_python_tanh", Activation::kGeluTanh},
                                                      {"gelu_fast", Activation::kGeluTanh},
                                                      {"gelu_accurate", Activation::kGeluTanh},
                                                      {"gelu", Activation::kGelu},
                                                      {"gelu_python", Activation::kGelu},
                                                      {"relu", Activation::kRelu},
                                                      {"silu", Activation::kSilu},
                                                      {"swish", Activation::kSilu}};

// A boolean of config.json that must have one value, which is also its default.
struct Gpt2Flag {
  absl::string_view key;
  bool value;
};
inline constexpr Gpt2Flag kGpt2Flags[] = {{"scale_attn_weights", true},
                                          {"scale_attn_by_inverse_layer_idx", false},
                                          {"add_cross_attention", false}};

// The three dropout probabilities of config.json, which must be equal.
inline constexpr absl::string_view kGpt2Dropouts[] = {"embd_pdrop", "attn_pdrop", "resid_pdrop"};

inline constexpr char kGpt2EpsKey[] = "layer_norm_epsilon";
inline constexpr double kMaxGpt2Eps = 1;

// Returns a model of the family. Members that it doesn't fix are GPT-2's defaults.
ModelConfig Gpt2Model();

// Returns INVALID_ARGUMENT with the field, its value and what is expected, if GPT-2's files can't
// hold the model.
absl::Status CheckGpt2Model(const ModelConfig& model);

// Returns true if transformers' GPT2LMHeadModel computes the model.
bool IsPlainGpt2(const ModelConfig& model);

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

// Returns the name and the shape of a parameter in GPT-2, which stores weights of blocks as
// [in, out].
std::string Gpt2TensorName(const ParameterInfo& parameter);
std::vector<int64_t> Gpt2TensorShape(const ParameterInfo& parameter);

// Returns true if the parameter's matrix is stored transposed.
inline bool IsTransposed(const ParameterInfo& parameter) {
  return parameter.role == ParameterRole::kWeight;
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_FAMILY_H_
