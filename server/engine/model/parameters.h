// A stack's parameters: one flat buffer [R, P], one for their gradients, and named views of both.
#ifndef ABLATE_SERVER_ENGINE_MODEL_PARAMETERS_H_
#define ABLATE_SERVER_ENGINE_MODEL_PARAMETERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/layout.h"
#include "server/engine/safetensors.h"

namespace ablate::engine {

// A tensor that the model does not have is undefined.
struct LinearParameters {
  at::Tensor weight;  // [R, out, in]
  at::Tensor bias;    // [R, out]
};

struct NormParameters {
  at::Tensor gain;   // [R, d]
  at::Tensor shift;  // [R, d]
};

struct BlockParameters {
  NormParameters attention_norm;
  LinearParameters qkv;         // [R, 3d, d]: rows of queries, keys, values
  LinearParameters projection;  // [R, d, d]
  NormParameters feed_forward_norm;
  LinearParameters up;    // [R, h, d]
  LinearParameters down;  // [R, d, h]
};

struct ModelParameters {
  at::Tensor token_embedding;     // [R, V, d]
  at::Tensor position_embedding;  // [R, context, d]
  std::vector<BlockParameters> blocks;
  NormParameters final_norm;
  LinearParameters head;  // [R, V, d]; the weight is token_embedding when tied
};

// A Function's optional argument: an undefined tensor is not one that autograd takes.
inline std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

at::TensorOptions TensorOptionsOf(Device device, Precision precision);

// Views [R, shape…] of the parameters in `flat` [R, P], in layout order.
std::vector<at::Tensor> ParameterViews(const ParameterLayout& layout, const at::Tensor& flat);

// The parameters [P] whose bytes, in layout order, are given.
at::Tensor FlatTensor(const ParameterLayout& layout, TensorType type,
                      const std::vector<absl::string_view>& parameters);

// The places of the model filled with `tensors`, one a parameter of the layout of `config`.
ModelParameters BindParameters(const ModelConfig& config, const ParameterLayout& layout,
                               const std::vector<at::Tensor>& tensors);

// Values and gradients of a stack of R runs. The leaves of autograd are detached views whose
// `.grad` are views of the flat gradient: an update, a norm or a copy is one operation on a flat
// buffer.
class FlatParameters {
 public:
  FlatParameters(const ModelConfig& config, int64_t runs, at::TensorOptions options);

  const ParameterLayout& layout() const { return layout_; }
  const at::Tensor& values() const { return values_; }        // [R, P]
  const at::Tensor& gradients() const { return gradients_; }  // [R, P]
  const ModelParameters& model() const { return model_; }     // the leaves in their places

 private:
  ParameterLayout layout_;
  at::Tensor values_;
  at::Tensor gradients_;
  ModelParameters model_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_PARAMETERS_H_
