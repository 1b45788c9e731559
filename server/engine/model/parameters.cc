#include "server/engine/model/parameters.h"

#include <cstring>
#include <utility>

namespace ablate::engine {
namespace {

// Where a parameter has its place in the model.
at::Tensor& PlaceOf(const ParameterInfo& parameter, ModelParameters& model) {
  const bool is_bias = parameter.role == ParameterRole::kBias;
  const auto norm = [&](NormParameters& of) -> at::Tensor& { return is_bias ? of.shift : of.gain; };
  const auto linear = [&](LinearParameters& of) -> at::Tensor& {
    return is_bias ? of.bias : of.weight;
  };
  const auto block = [&]() -> BlockParameters& {
    return model.blocks.at(static_cast<size_t>(parameter.block));
  };
  switch (parameter.module) {
    case Module::kTokenEmbedding:
      break;
    case Module::kPositionEmbedding:
      return model.position_embedding;
    case Module::kAttentionNorm:
      return norm(block().attention_norm);
    case Module::kQkv:
      return linear(block().qkv);
    case Module::kProjection:
      return linear(block().projection);
    case Module::kFeedForwardNorm:
      return norm(block().feed_forward_norm);
    case Module::kUp:
      return linear(block().up);
    case Module::kDown:
      return linear(block().down);
    case Module::kFinalNorm:
      return norm(model.final_norm);
    case Module::kHead:
      return linear(model.head);
  }
  return model.token_embedding;
}

}  // namespace

at::TensorOptions TensorOptionsOf(Device device, Precision precision) {
  return at::TensorOptions()
      .device(device == Device::kCuda ? at::kCUDA : at::kCPU)
      .dtype(precision == Precision::kFloat64 ? at::kDouble : at::kFloat);
}

std::vector<at::Tensor> ParameterViews(const ParameterLayout& layout, const at::Tensor& flat) {
  std::vector<at::Tensor> views;
  views.reserve(layout.parameters.size());
  for (const ParameterInfo& parameter : layout.parameters) {
    std::vector<int64_t> shape = {flat.size(0)};
    shape.insert(shape.end(), parameter.shape.begin(), parameter.shape.end());
    views.push_back(flat.narrow(1, parameter.offset, parameter.size).view(shape));
  }
  return views;
}

at::Tensor FlatTensor(const ParameterLayout& layout, TensorType type,
                      const std::vector<absl::string_view>& parameters) {
  at::Tensor flat = at::empty({layout.size}, type == TensorType::kF64 ? at::kDouble : at::kFloat);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor place = flat.narrow(0, layout.parameters[i].offset, layout.parameters[i].size);
    std::memcpy(place.mutable_data_ptr(), parameters[i].data(), parameters[i].size());
  }
  return flat;
}

ModelParameters BindParameters(const ModelConfig& config, const ParameterLayout& layout,
                               const std::vector<at::Tensor>& tensors) {
  ModelParameters model;
  model.blocks.resize(static_cast<size_t>(config.layers));
  for (size_t i = 0; i < tensors.size(); ++i) PlaceOf(layout.parameters[i], model) = tensors[i];
  if (config.tied_head) model.head.weight = model.token_embedding;
  return model;
}

FlatParameters::FlatParameters(const ModelConfig& config, int64_t runs, at::TensorOptions options)
    : layout_(MakeLayout(config)),
      values_(at::zeros({runs, layout_.size}, options)),
      gradients_(at::zeros({runs, layout_.size}, options)) {
  const std::vector<at::Tensor> gradient_views = ParameterViews(layout_, gradients_);
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& view : ParameterViews(layout_, values_)) {
    at::Tensor leaf = view.detach().requires_grad_();
    leaf.mutable_grad() = gradient_views[leaves.size()];
    leaves.push_back(std::move(leaf));
  }
  model_ = BindParameters(config, layout_, leaves);
}

}  // namespace ablate::engine
