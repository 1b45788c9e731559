// The linear layer as one node of the graph: fewer than transpose, product and sum would be.
#include "server/engine/model/linear.h"

#include <torch/csrc/autograd/custom_function.h>

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class BackpropLinear : public torch::autograd::Function<BackpropLinear> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["has_bias"] = bias.has_value();
    const at::Tensor transposed = weight.transpose(1, 2);  // [R, in, out]
    return bias.has_value() ? at::baddbmm(bias->unsqueeze(1), x, transposed) : x.bmm(transposed);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& g = gradients[0];  // [R, N, out]
    at::Tensor dx, dw, db;
    if (ctx->needs_input_grad(0)) dx = g.bmm(weight);             // [R, N, in]
    if (ctx->needs_input_grad(1)) dw = g.transpose(1, 2).bmm(x);  // [R, out, in]
    if (ctx->saved_data["has_bias"].toBool() && ctx->needs_input_grad(2))
      db = g.sum(1);  // [R, out]
    return {dx, dw, db};
  }
};

}  // namespace

at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule) {
  switch (rule) {
    case LearningRule::kBackprop:
      return BackpropLinear::apply(x, parameters.weight, IfDefined(parameters.bias));
  }
  TORCH_CHECK(false, "unknown learning rule");
}

}  // namespace ablate::engine
