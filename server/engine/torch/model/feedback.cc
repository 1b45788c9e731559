#include "server/engine/torch/model/feedback.h"

#include <torch/csrc/autograd/custom_function.h>

#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// error [B, d] at positions `last` [B] of B rows → [B·T, d], 0 elsewhere.
at::Tensor AtScoredPositions(const at::Tensor& error, const at::Tensor& last, int64_t positions) {
  const int64_t rows = error.size(0), d = error.size(1);
  const at::Tensor index = last.view({rows, 1, 1}).expand({-1, 1, d});
  return at::zeros({rows, positions / rows, d}, error.options())
      .scatter_(1, index, error.unsqueeze(1))
      .view({positions, d});
}

// The identity on the logits, with a custom backward pass.
class ErrorInjection : public torch::autograd::Function<ErrorInjection> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, at::TensorList outputs,
                            at::TensorList matrices, const std::optional<at::Tensor>& last) {
    variable_list saved = matrices.vec();
    saved.push_back(last.value_or(at::Tensor()));
    ctx->save_for_backward(saved);
    std::vector<int64_t> positions;
    for (const at::Tensor& output : outputs) positions.push_back(output.size(0));
    ctx->saved_data["positions"] = positions;
    return logits.view_as(logits);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<int64_t> positions = ctx->saved_data["positions"].toIntVector();
    const at::Tensor& last = saved.back();
    const at::Tensor& error = gradients[0];  // [M, V]
    variable_list result = {error};
    for (size_t i = 0; i < positions.size(); ++i) {
      const at::Tensor through = Product(error, saved[i]);  // [M, d]
      const bool whole = through.size(0) == positions[i];
      result.push_back(whole ? through : AtScoredPositions(through, last, positions[i]));
    }
    result.resize(2 * positions.size() + 2);  // matrices and positions have no gradient
    return result;
  }
};

}  // namespace

at::Tensor InjectErrors(const at::Tensor& logits, const FeedbackTargets& targets) {
  return ErrorInjection::apply(logits, at::TensorList(targets.outputs),
                               at::TensorList(targets.matrices), IfDefined(targets.last));
}

}  // namespace ablate::engine
