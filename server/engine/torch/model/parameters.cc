#include "server/engine/torch/model/parameters.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cstring>
#include <utility>

#include "server/engine/torch/model/unrecorded.h"

namespace ablate::engine {
namespace {

// Pointers to a module's tensors in the model; null if it has none.
struct Places {
  at::Tensor* values = nullptr;  // a linear's weight, a norm's gain, a table, numbers
  at::Tensor* bias = nullptr;
  at::Tensor* feedback = nullptr;
  at::Tensor* running_mean = nullptr;
  at::Tensor* running_variance = nullptr;
  at::Tensor* alpha = nullptr;
  at::Tensor* offset = nullptr;
};

Places Of(NormParameters& norm) {
  return {&norm.gain,  &norm.shift, nullptr, &norm.running_mean, &norm.running_variance,
          &norm.alpha, &norm.offset};
}

Places Of(LinearParameters& linear) { return {&linear.weight, &linear.bias, &linear.feedback}; }

Places PlacesOf(Module module, int block, ModelParameters& model) {
  const auto in_block = [&]() -> BlockParameters& {
    return model.blocks.at(static_cast<size_t>(block));
  };
  switch (module) {
    case Module::kTokenEmbedding:
      return {&model.token_embedding, nullptr, &model.embedding_feedback};
    case Module::kPositionEmbedding:
      return {&model.position_embedding};
    case Module::kEmbeddingNorm:
      return Of(model.embedding_norm);
    case Module::kAttentionNorm:
      return Of(in_block().attention_norm);
    case Module::kQkv:
      return Of(in_block().qkv);
    case Module::kQueryNorm:
      return Of(in_block().query_norm);
    case Module::kKeyNorm:
      return Of(in_block().key_norm);
    case Module::kSink:
      return {.offset = &in_block().sink};
    case Module::kValueMix:
      return {&in_block().value_mix};
    case Module::kProjection:
      return Of(in_block().projection);
    case Module::kAttentionPostNorm:
      return Of(in_block().attention_post_norm);
    case Module::kAttentionUpdateGain:
      return {&in_block().attention_update_gain};
    case Module::kFeedForwardNorm:
      return Of(in_block().feed_forward_norm);
    case Module::kUp:
      return Of(in_block().up);
    case Module::kDown:
      return Of(in_block().down);
    case Module::kFeedForwardPostNorm:
      return Of(in_block().feed_forward_post_norm);
    case Module::kFeedForwardUpdateGain:
      return {&in_block().feed_forward_update_gain};
    case Module::kBlock:
      return {nullptr, nullptr, &in_block().feedback};
    case Module::kFinalNorm:
      return Of(model.final_norm);
    case Module::kHead:
      return Of(model.head);
  }
  return {};
}

at::Tensor& PlaceOf(const ParameterInfo& parameter, ModelParameters& model) {
  const Places places = PlacesOf(parameter.module, parameter.block, model);
  at::Tensor* const place = parameter.role == ParameterRole::kBias     ? places.bias
                            : parameter.role == ParameterRole::kAlpha  ? places.alpha
                            : parameter.role == ParameterRole::kOffset ? places.offset
                                                                       : places.values;
  TORCH_CHECK(place != nullptr, "no place for the parameter ", parameter.name);
  return *place;
}

at::Tensor& PlaceOf(const BufferInfo& buffer, ModelParameters& model) {
  const Places places = PlacesOf(buffer.module, buffer.block, model);
  switch (buffer.role) {
    case BufferRole::kRunningMean:
      return *places.running_mean;
    case BufferRole::kRunningVariance:
      return *places.running_variance;
    case BufferRole::kFeedback:
      break;
  }
  return *places.feedback;
}

// Returns a view [shape…] of `info`'s elements in `flat`.
template <typename Info>
at::Tensor ViewOf(const Info& info, const at::Tensor& flat) {
  return flat.narrow(0, info.offset, info.size).view(info.shape);
}

}  // namespace

at::TensorOptions TensorOptionsOf(at::Device device, Precision precision) {
  return at::TensorOptions().device(device).dtype(precision == Precision::kFloat64 ? at::kDouble
                                                                                   : at::kFloat);
}

std::vector<at::Tensor> ParameterViews(const ParameterLayout& layout, const at::Tensor& flat) {
  std::vector<at::Tensor> views;
  views.reserve(layout.parameters.size());
  for (const ParameterInfo& parameter : layout.parameters) views.push_back(ViewOf(parameter, flat));
  return views;
}

at::Tensor FlatTensor(TensorType type, const std::vector<absl::string_view>& pieces) {
  size_t bytes = 0;
  for (const absl::string_view piece : pieces) bytes += piece.size();
  const bool is_double = type == TensorType::kF64;
  const size_t width = is_double ? sizeof(double) : sizeof(float);
  at::Tensor flat =
      at::empty({static_cast<int64_t>(bytes / width)}, is_double ? at::kDouble : at::kFloat);
  char* to = static_cast<char*>(flat.mutable_data_ptr());
  for (const absl::string_view piece : pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  return flat;
}

ModelParameters BindParameters(const ModelConfig& config, const ParameterLayout& layout,
                               const std::vector<at::Tensor>& parameters,
                               const at::Tensor& buffers) {
  ModelParameters model;
  model.blocks.resize(static_cast<size_t>(config.layers));
  for (size_t i = 0; i < parameters.size(); ++i) {
    PlaceOf(layout.parameters[i], model) = parameters[i];
  }
  // A view with its own version counter, because autograd would mistake an update of the running
  // statistics for a change of the feedback in the same buffer.
  for (const BufferInfo& buffer : layout.buffers) {
    PlaceOf(buffer, model) = ViewOf(buffer, buffers).variable_data();
  }
  if (config.tied_head) model.head.weight = model.token_embedding;
  return model;
}

// The leaves whose part of the flat gradient is set.
struct FlatParameters::Written {
  std::vector<bool> leaves;
};

// Moves the gradient of a leaf into the flat gradient as soon as autograd has it, while it is in
// the processor's caches. Views as `.grad` of the leaves would cost two more passes over the
// memory: one that sets them to 0, and one that reads them to add.
class FlatParameters::WriteGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  WriteGradient(at::Tensor to, size_t leaf, std::shared_ptr<Written> written)
      : to_(std::move(to)), leaf_(leaf), written_(std::move(written)) {}

  void operator()(const at::Tensor& leaf) override {
    const Unrecorded unrecorded;
    at::Tensor& gradient = leaf.mutable_grad();
    if (written_->leaves[leaf_]) {
      to_.add_(gradient);
    } else {
      to_.copy_(gradient);
    }
    written_->leaves[leaf_] = true;
    gradient.reset();
  }

 private:
  const at::Tensor to_;
  const size_t leaf_;
  const std::shared_ptr<Written> written_;
};

FlatParameters::FlatParameters(const ModelConfig& config, LearningRule rule,
                               at::TensorOptions options)
    : layout_(MakeLayout(config, rule)),
      values_(at::zeros({layout_.size}, options)),
      gradients_(at::zeros({layout_.size}, options)),
      written_(std::make_shared<Written>()) {
  if (layout_.buffer_size > 0) buffers_ = at::zeros({layout_.buffer_size}, options);
  const std::vector<at::Tensor> gradients = ParameterViews(layout_, gradients_);
  for (const at::Tensor& view : ParameterViews(layout_, values_)) {
    const at::Tensor& leaf = leaves_.emplace_back(view.detach().requires_grad_());
    if (!leaf.is_cpu()) continue;
    const size_t i = leaves_.size() - 1;
    torch::autograd::impl::set_post_acc_grad_hooks(
        leaf, std::make_unique<WriteGradient>(gradients[i], i, written_));
  }
  written_->leaves.resize(leaves_.size());
  model_ = BindParameters(config, layout_, leaves_, buffers_);
}

void FlatParameters::SetGradients(const at::Tensor& loss) const {
  written_->leaves.assign(leaves_.size(), false);
  torch::autograd::backward({loss}, /*grad_tensors=*/{});
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const ParameterInfo& parameter = layout_.parameters[i];
    if (!written_->leaves[i]) gradients_.narrow(0, parameter.offset, parameter.size).zero_();
  }
}

void FlatParameters::AddGradients(const at::Tensor& loss) const {
  written_->leaves.assign(leaves_.size(), true);
  torch::autograd::backward({loss}, /*grad_tensors=*/{});
}

at::Tensor FlatParameters::statistics() const {
  const int64_t size = layout_.statistics_size;
  return size == 0 ? at::Tensor() : buffers_.narrow(0, 0, size);
}

}  // namespace ablate::engine
