// Holds a run's parameters: one flat buffer [P], one for their gradients, and named views of both.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_PARAMETERS_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_PARAMETERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/safetensors.h"
#include "server/engine/config.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// Parameters of a linear. A tensor that the model lacks is undefined.
struct LinearParameters {
  at::Tensor weight;    // [out, in]
  at::Tensor bias;      // [out]
  at::Tensor feedback;  // [out, in], replaces the weight in feedback alignment
};

struct NormParameters {
  at::Tensor gain = {};   // [d]; NormConfig::gain_form says what is learned
  at::Tensor shift = {};  // [d]
  // BatchNorm's running statistics, [d]; a pass with kBatchAndTrack changes them.
  at::Tensor running_mean = {};
  at::Tensor running_variance = {};
  at::Tensor alpha = {};   // [1], of a pointwise norm
  at::Tensor offset = {};  // [1], of derf
};

struct BlockParameters {
  NormParameters attention_norm;
  LinearParameters qkv;       // [q + 2k, d]: rows of queries, keys, values (QueryWidth, KvWidth)
  NormParameters query_norm;  // of a head's features, or of all heads'
  NormParameters key_norm;
  at::Tensor sink;              // [H], scores
  at::Tensor value_mix;         // [1], the part of the block's own values
  LinearParameters projection;  // [d, d]
  NormParameters attention_post_norm;
  at::Tensor attention_update_gain;  // [d] or [1]
  NormParameters feed_forward_norm;
  LinearParameters up;    // [h, d], or [2h, d]: rows of gates, then of gated values
  LinearParameters down;  // [d, h]
  NormParameters feed_forward_post_norm;
  at::Tensor feed_forward_update_gain;  // [d] or [1]
  at::Tensor feedback;  // [V, d], projects the output error in direct feedback alignment
};

struct ModelParameters {
  at::Tensor token_embedding;     // [V, d]
  at::Tensor position_embedding;  // [context, d]
  at::Tensor embedding_feedback;  // [V, d], as a block's
  NormParameters embedding_norm;
  std::vector<BlockParameters> blocks;
  NormParameters final_norm;
  LinearParameters head;  // [V, d]; the weight is token_embedding when tied
};

// Returns an optional argument for a Function, because autograd accepts no undefined tensor.
inline std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

at::TensorOptions TensorOptionsOf(at::Device device, Precision precision);

// Returns views [shape…] of the parameters in `flat` [P], in layout order.
std::vector<at::Tensor> ParameterViews(const ParameterLayout& layout, const at::Tensor& flat);

// Returns the flat buffer of parameters or buffers, given their bytes in layout order.
at::Tensor FlatTensor(TensorType type, const std::vector<absl::string_view>& pieces);

// Returns a model of `config` with these `parameters`, one for each in the layout, and with views
// of its buffers.
ModelParameters BindParameters(const ModelConfig& config, const ParameterLayout& layout,
                               const std::vector<at::Tensor>& parameters,
                               const at::Tensor& buffers);

// Holds values, gradients and buffers of a run in flat buffers, so that an update, a norm or a copy
// is one operation. The autograd leaves are detached views.
class FlatParameters {
 public:
  // Values start at 0; buffers are undefined if the layout has none.
  FlatParameters(const ModelConfig& config, LearningRule rule, at::TensorOptions options);

  const ParameterLayout& layout() const { return layout_; }
  const at::Tensor& values() const { return values_; }        // [P]
  const at::Tensor& gradients() const { return gradients_; }  // [P]
  const at::Tensor& buffers() const { return buffers_; }
  // BatchNorm's running statistics, the first part of the buffers; undefined if there are none.
  at::Tensor statistics() const;
  const std::vector<at::Tensor>& leaves() const { return leaves_; }  // in layout order
  const ModelParameters& model() const { return model_; }            // the leaves, by name

  // Sets gradients() to the gradient of `loss` by the leaves, or adds it to them. On a CPU only.
  void SetGradients(const at::Tensor& loss) const;
  void AddGradients(const at::Tensor& loss) const;

 private:
  struct Written;
  class WriteGradient;

  ParameterLayout layout_;
  at::Tensor values_;
  at::Tensor gradients_;
  at::Tensor buffers_;
  std::vector<at::Tensor> leaves_;
  ModelParameters model_;
  std::shared_ptr<Written> written_;  // by the current backward pass
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_PARAMETERS_H_
