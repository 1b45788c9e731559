#include "server/engine/analyze/hessian_products.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Returns the number of leading batches whose graphs fit.
size_t BatchesThatFit(const AnalysisContext& analysis, const SubjectModel& subject,
                      uint64_t bytes) {
  uint64_t taken = 0;
  size_t count = 0;
  for (const TokenBatch& batch : analysis.batches) {
    taken += GraphBytes(subject, batch);
    if (taken > bytes) break;
    ++count;
  }
  return count;
}

}  // namespace

uint64_t GraphBytes(const SubjectModel& subject, const TokenBatch& batch) {
  // Values of each kind that a graph holds, as measured; the largest numbers are with four norms
  // per block.
  constexpr int64_t kWidths = 40, kHiddens = 4, kGatedHiddens = 12, kScores = 3, kLogits = 5;
  const ModelConfig& model = subject.config.model;
  const int64_t widest = Attends(model) ? std::max(model.width, QueryWidth(model)) : model.width;
  const int64_t hiddens = IsGated(model.activation) ? kGatedHiddens : kHiddens;
  const int64_t block =
      kWidths * widest + hiddens * model.hidden + kScores * model.heads * batch.length;
  const int64_t token = model.layers * block + kLogits * model.vocabulary;
  return subject.values.element_size() * static_cast<uint64_t>(batch.rows * batch.length * token);
}

uint64_t KeptGraphBytes(const SubjectModel& subject) {
  return std::max(kGraphBytes, 8 * static_cast<uint64_t>(subject.values.nbytes()));
}

HessianProducts::HessianProducts(const AnalysisContext& analysis, const SubjectModel& subject,
                                 std::optional<uint64_t> kept_bytes)
    : analysis_(analysis),
      subject_(subject),
      targets_(TargetsIn(analysis.batches)),
      leaves_(subject),
      kept_(BatchesThatFit(analysis, subject, kept_bytes.value_or(KeptGraphBytes(subject)))) {}

HessianProducts::Graph HessianProducts::MakeGraph(size_t batch) const {
  const at::AutoGradMode with_gradients(true);
  const ModelConfig& model = subject_.config.model;
  const BatchTensors tensors = BatchOf(subject_, analysis_.batches[batch]);
  const Hooks hooks = HooksOf(analysis_, model, {});
  const at::Tensor logits = Logits(model, leaves_.parameters, tensors, {.hooks = &hooks});
  const at::Tensor losses = TokenLosses(logits, tensors);  // [N]
  return {losses.detach(), torch::autograd::grad({losses.sum() / targets_}, leaves_.all, {},
                                                 /*retain_graph=*/true, /*create_graph=*/true,
                                                 /*allow_unused=*/true)};
}

HessianProducts::Graph HessianProducts::GraphOf(size_t batch) {
  if (batch >= kept_.size()) return MakeGraph(batch);
  if (!kept_[batch].loss.defined()) kept_[batch] = MakeGraph(batch);
  return kept_[batch];
}

at::Tensor HessianProducts::Flat(const std::vector<at::Tensor>& by_leaf) const {
  at::Tensor flat = at::empty({subject_.layout.size}, subject_.values.options());
  for (size_t i = 0; i < by_leaf.size(); ++i) {
    const ParameterInfo& parameter = subject_.layout.parameters[i];
    at::Tensor part = flat.narrow(0, parameter.offset, parameter.size);
    by_leaf[i].defined() ? part.copy_(by_leaf[i].detach().flatten()) : part.zero_();
  }
  return flat;
}

BatchDerivative HessianProducts::Differentiate(size_t batch) {
  CheckStop(analysis_);
  const Graph graph = GraphOf(batch);
  return {graph.loss.sum(at::kDouble).item<double>() / targets_, Flat(graph.gradient)};
}

at::Tensor HessianProducts::Multiply(size_t batch, const at::Tensor& vector) {
  CheckStop(analysis_);
  const Graph graph = GraphOf(batch);
  std::vector<at::Tensor> gradient, weights;
  for (size_t i = 0; i < graph.gradient.size(); ++i) {
    const at::Tensor& part = graph.gradient[i];
    if (!part.defined() || !part.requires_grad()) continue;
    const ParameterInfo& parameter = subject_.layout.parameters[i];
    gradient.push_back(part);
    weights.push_back(vector.narrow(0, parameter.offset, parameter.size).view(part.sizes()));
  }
  return Flat(torch::autograd::grad(gradient, leaves_.all, weights,
                                    /*retain_graph=*/batch < kept_.size(),
                                    /*create_graph=*/false, /*allow_unused=*/true));
}

}  // namespace ablate::engine
