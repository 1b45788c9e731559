#include "server/engine/model/layers.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename Scalar>
at::Tensor GatherRows(const at::Tensor& table, const at::Tensor& tokens) {
  const int64_t runs = tokens.size(0), count = tokens.size(1);
  const int64_t vocabulary = table.size(1), width = table.size(2);
  at::Tensor out = at::empty({runs, count, width}, table.options());
  const int64_t* token = tokens.const_data_ptr<int64_t>();
  Scalar* to = out.mutable_data_ptr<Scalar>();
  for (int64_t run = 0; run < runs; ++run) {
    const Scalar* rows = table.const_data_ptr<Scalar>() + run * table.stride(0);
    for (int64_t i = 0; i < count; ++i, ++token, to += width) {
      TORCH_CHECK(*token >= 0 && *token < vocabulary, "token ", *token, " is outside 0…",
                  vocabulary - 1);
      std::copy_n(rows + *token * width, width, to);
    }
  }
  return out;
}

template <typename Scalar>
at::Tensor ScatterRows(const at::Tensor& gradient, const at::Tensor& tokens, int64_t vocabulary) {
  const int64_t runs = tokens.size(0), count = tokens.size(1), width = gradient.size(2);
  at::Tensor out = at::zeros({runs, vocabulary, width}, gradient.options());
  const at::Tensor contiguous = gradient.contiguous();
  const int64_t* token = tokens.const_data_ptr<int64_t>();
  const Scalar* from = contiguous.const_data_ptr<Scalar>();
  for (int64_t run = 0; run < runs; ++run) {
    Scalar* rows = out.mutable_data_ptr<Scalar>() + run * vocabulary * width;
    for (int64_t i = 0; i < count; ++i, ++token, from += width) {
      Scalar* row = rows + *token * width;
      for (int64_t j = 0; j < width; ++j) row[j] += from[j];
    }
  }
  return out;
}

at::Tensor LookUp(const at::Tensor& table, const at::Tensor& tokens) {
  if (!table.is_cpu()) {
    return table.gather(1, tokens.unsqueeze(2).expand({-1, -1, table.size(2)}));
  }
  return table.scalar_type() == at::kDouble ? GatherRows<double>(table, tokens)
                                            : GatherRows<float>(table, tokens);
}

// Sums the gradient's rows into their tokens' rows, in operations that can be differentiated again.
// index_put with accumulation is the deterministic one on CUDA.
at::Tensor DifferentiableScatter(const at::Tensor& gradient, const at::Tensor& tokens,
                                 int64_t vocabulary) {
  const int64_t runs = tokens.size(0), width = gradient.size(2);
  const at::Tensor first = at::arange(runs, tokens.options()).unsqueeze(1) * vocabulary;  // [R, 1]
  const at::Tensor rows = (tokens + first).reshape(-1);                                   // [R·N]
  return at::zeros({runs * vocabulary, width}, gradient.options())
      .index_put({rows}, gradient.reshape({-1, width}), /*accumulate=*/true)
      .view({runs, vocabulary, width});
}

// Runs are P elements apart in the flat buffer, so that their tables are no single [R·V, d] table
// that at::embedding could read.
class TableLookUp : public torch::autograd::Function<TableLookUp> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& table,
                            const at::Tensor& tokens) {
    ctx->save_for_backward({tokens});
    ctx->saved_data["vocabulary"] = table.size(1);
    return LookUp(table, tokens);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const at::Tensor tokens = ctx->get_saved_variables()[0];
    const int64_t vocabulary = ctx->saved_data["vocabulary"].toInt();
    const at::Tensor& g = gradients[0];  // [R, N, d]
    if (at::GradMode::is_enabled() || !g.is_cpu()) {
      return {DifferentiableScatter(g, tokens, vocabulary), {}};
    }
    return {g.scalar_type() == at::kDouble ? ScatterRows<double>(g, tokens, vocabulary)
                                           : ScatterRows<float>(g, tokens, vocabulary),
            {}};
  }
};

// One node of the graph: fewer than transpose, product and sum would be. Where there is feedback,
// it takes the weight's place in the gradient of x.
class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const std::optional<at::Tensor>& feedback) {
    ctx->save_for_backward({x, feedback.value_or(weight)});
    ctx->saved_data["has_bias"] = bias.has_value();
    const at::Tensor transposed = weight.transpose(1, 2);  // [R, in, out]
    return bias.has_value() ? at::baddbmm(bias->unsqueeze(1), x, transposed) : x.bmm(transposed);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& back = saved[1];
    const at::Tensor& g = gradients[0];  // [R, N, out]
    at::Tensor dx, dw, db;
    if (ctx->needs_input_grad(0)) dx = g.bmm(back);               // [R, N, in]
    if (ctx->needs_input_grad(1)) dw = g.transpose(1, 2).bmm(x);  // [R, out, in]
    if (ctx->saved_data["has_bias"].toBool() && ctx->needs_input_grad(2))
      db = g.sum(1);  // [R, out]
    return {dx, dw, db, {}};
  }
};

}  // namespace

at::Tensor Embedding(const at::Tensor& table, const at::Tensor& tokens) {
  return TableLookUp::apply(table, tokens);
}

at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule) {
  const bool aligned = rule == LearningRule::kFeedbackAlignment;
  TORCH_CHECK(!aligned || parameters.feedback.defined(), "a linear has no feedback to align with");
  return LinearFunction::apply(x, parameters.weight, IfDefined(parameters.bias),
                               IfDefined(aligned ? parameters.feedback : at::Tensor()));
}

at::Tensor TokenLosses(const at::Tensor& logits, const StackBatch& batch, double label_smoothing) {
  const at::Tensor log_probabilities = logits.log_softmax(-1);  // [R, N, V]
  at::Tensor losses =
      -log_probabilities.gather(2, batch.targets.unsqueeze(2)).squeeze(2);  // [R, N]
  if (label_smoothing > 0) {
    losses = losses * (1 - label_smoothing) - log_probabilities.mean(-1) * label_smoothing;
  }
  return batch.counted.defined() ? losses * batch.counted : losses;  // [R, N]
}

at::Tensor RunLosses(const at::Tensor& logits, const StackBatch& batch,
                     const Objective& objective) {
  const at::Tensor losses = TokenLosses(logits, batch, objective.label_smoothing);  // [R, N]
  if (objective.targets.defined()) return losses.sum(1) / objective.targets;
  return batch.counted.defined() ? losses.sum(1) / batch.counted.sum(1) : losses.mean(1);
}

}  // namespace ablate::engine
