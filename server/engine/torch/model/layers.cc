#include "server/engine/torch/model/layers.h"

#include <torch/csrc/autograd/custom_function.h>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/unrecorded.h"

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// True if a product keeps the bits that stored resume states were made with.
bool KeepsBits(const at::Tensor& a) { return a.is_cpu() && a.scalar_type() != at::kBFloat16; }

at::Tensor ProductAndSum(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (!KeepsBits(a)) return at::addmm(sum, a, b);
  return at::baddbmm(sum, a.unsqueeze(0), b.unsqueeze(0)).squeeze(0);
}

// Without a call of LibTorch if it has the type.
at::Tensor As(const at::Tensor& x, at::ScalarType type) {
  return x.scalar_type() == type ? x : x.to(type);
}

// One graph node instead of transpose, product and sum. Feedback, if defined, replaces the weight
// in the gradient of x.
class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const std::optional<at::Tensor>& feedback, at::ScalarType factors) {
    const Unrecorded unrecorded;
    const at::Tensor in = As(x, factors), w = As(weight, factors);
    ctx->save_for_backward({in, feedback.has_value() ? As(*feedback, factors) : w});
    ctx->saved_data["has_bias"] = bias.has_value();
    const at::Tensor transposed = w.t();  // [in, out]
    return bias.has_value() ? ProductAndSum(As(*bias, factors), in, transposed)
                            : Product(in, transposed);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Unrecorded unrecorded;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& back = saved[1];
    const at::Tensor& g = gradients[0];  // [N, out]
    at::Tensor dx, dw, db;
    if (ctx->needs_input_grad(0)) dx = Product(g, back);   // [N, in]
    if (ctx->needs_input_grad(1)) dw = Product(g.t(), x);  // [out, in]
    if (ctx->saved_data["has_bias"].toBool() && ctx->needs_input_grad(2)) db = g.sum(0);  // [out]
    return {dx, dw, db, {}, {}};
  }
};

}  // namespace

at::Tensor Product(const at::Tensor& a, const at::Tensor& b) {
  if (!KeepsBits(a)) return a.mm(b);
  return a.unsqueeze(0).bmm(b.unsqueeze(0)).squeeze(0);
}

at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule,
                  std::optional<at::ScalarType> factors) {
  const bool aligned = rule == LearningRule::kFeedbackAlignment;
  TORCH_CHECK(!aligned || parameters.feedback.defined(), "a linear has no feedback to align with");
  return LinearFunction::apply(x, parameters.weight, IfDefined(parameters.bias),
                               IfDefined(aligned ? parameters.feedback : at::Tensor()),
                               factors.value_or(parameters.weight.scalar_type()));
}

at::Tensor Head(const at::Tensor& x, const LinearParameters& parameters,
                std::optional<at::ScalarType> factors) {
  return As(Linear(x, parameters, LearningRule::kBackprop, factors),
            parameters.weight.scalar_type());
}

at::Tensor ForHead(const ModelConfig& config, const at::Tensor& x) {
  const double ratio = WidthRatio(config);
  return ratio == 1 ? x : x / ratio;
}

at::Tensor Capped(const at::Tensor& x, double cap) { return cap > 0 ? (x / cap).tanh() * cap : x; }

at::Tensor TokenLosses(const at::Tensor& logits, const BatchTensors& batch,
                       double label_smoothing) {
  const at::Tensor log_probabilities = logits.log_softmax(-1);  // [N, V]
  // On a device, gather's gradient would be summed in any order, or sorted first.
  at::Tensor losses = logits.is_cpu()
                          ? -log_probabilities.gather(1, batch.targets.unsqueeze(1)).squeeze(1)
                          : at::nll_loss(log_probabilities, batch.targets, /*weight=*/{},
                                         at::Reduction::None);  // [N]
  if (label_smoothing > 0) {
    losses = losses * (1 - label_smoothing) - log_probabilities.mean(-1) * label_smoothing;
  }
  return batch.counted.defined() ? losses * batch.counted : losses;  // [N]
}

at::Tensor MeanLoss(const at::Tensor& logits, const BatchTensors& batch,
                    const Objective& objective) {
  at::Tensor losses = TokenLosses(logits, batch, objective.label_smoothing);  // [N]
  if (objective.z_loss > 0) {
    const at::Tensor square = logits.logsumexp(-1).square();  // [N]
    const at::Tensor counted = batch.counted.defined() ? square * batch.counted : square;
    losses = losses + counted * objective.z_loss;
  }
  if (objective.targets.defined()) return losses.sum() / objective.targets;
  return batch.counted.defined() ? losses.sum() / batch.counted.sum() : losses.mean();
}

at::Tensor ScoreLogits(const at::Tensor& logits, const BatchTensors& batch) {
  const at::Tensor loss = TokenLosses(logits, batch).sum(at::kDouble);
  at::Tensor is_correct = logits.argmax(-1).eq(batch.targets);  // [N]
  if (batch.counted.defined()) is_correct = is_correct.logical_and(batch.counted.to(at::kBool));
  const at::Tensor tokens =
      batch.counted.defined()
          ? batch.counted.sum(at::kDouble)
          : at::full({}, static_cast<double>(batch.targets.numel()), loss.options());
  return at::stack({loss, is_correct.sum().to(at::kDouble), tokens});
}

}  // namespace ablate::engine
