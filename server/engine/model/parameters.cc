// Builds the flat buffers and binds their views to the model's places.
#include "server/engine/model/parameters.h"

#include <string>
#include <unordered_map>

namespace ablate::engine {
namespace {

using NamedTensors = std::unordered_map<std::string, at::Tensor>;

at::Tensor FindTensor(const NamedTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? at::Tensor() : found->second;
}

LinearParameters BindLinear(const NamedTensors& tensors, const std::string& name) {
  return {FindTensor(tensors, name + ".weight"), FindTensor(tensors, name + ".bias")};
}

NormParameters BindNorm(const NamedTensors& tensors, const std::string& name) {
  return {FindTensor(tensors, name + ".weight"), FindTensor(tensors, name + ".bias")};
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

ModelParameters BindParameters(const ModelConfig& config, const ParameterLayout& layout,
                               const std::vector<at::Tensor>& tensors) {
  NamedTensors named;
  for (size_t i = 0; i < tensors.size(); ++i) named[layout.parameters[i].name] = tensors[i];
  ModelParameters model;
  model.token_embedding = FindTensor(named, "token_embedding.weight");
  model.position_embedding = FindTensor(named, "position_embedding.weight");
  for (int i = 0; i < config.layers; ++i) {
    const std::string block = "block." + std::to_string(i);
    model.blocks.push_back({BindNorm(named, block + ".attention.norm"),
                            BindLinear(named, block + ".attention.qkv"),
                            BindLinear(named, block + ".attention.projection"),
                            BindNorm(named, block + ".feed_forward.norm"),
                            BindLinear(named, block + ".feed_forward.up"),
                            BindLinear(named, block + ".feed_forward.down")});
  }
  model.final_norm = BindNorm(named, "final_norm");
  model.head = BindLinear(named, "head");
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

ModelParameters FlatParameters::Run(const ModelConfig& config, int64_t run) const {
  return BindParameters(config, layout_, ParameterViews(layout_, values_.narrow(0, run, 1)));
}

}  // namespace ablate::engine
