#include "server/engine/model/layers.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "server/engine/model/norm_kernel.h"

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

// One node of the graph: fewer than transpose, product and sum would be.
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

struct Standardised {
  at::Tensor z;        // [R, N, d]
  at::Tensor inverse;  // 1/σ, [R, N, 1]
};

Standardised Standardise(const at::Tensor& x, NormKind kind, double eps) {
  const at::Tensor centred = kind == NormKind::kLayer ? x - x.mean(-1, true) : x;  // [R, N, d]
  const at::Tensor inverse = (centred.square().mean(-1, true) + eps).rsqrt();      // [R, N, 1]
  return {centred * inverse, inverse};
}

at::Tensor ComposedForward(const at::Tensor& x, const NormParameters& parameters, NormKind kind,
                           double eps) {
  at::Tensor y = Standardise(x, kind, eps).z;                           // [R, N, d]
  if (parameters.gain.defined()) y = y * parameters.gain.unsqueeze(1);  // [R, N, d]
  return parameters.shift.defined() ? y + parameters.shift.unsqueeze(1) : y;
}

variable_list ComposedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                               const at::Tensor& g, NormKind kind, double eps) {
  const auto [z, inverse] = Standardise(x, kind, eps);
  const at::Tensor dz = gain.defined() ? g * gain.unsqueeze(1) : g;  // [R, N, d]
  at::Tensor dx = dz - z * (dz * z).mean(-1, true);                  // [R, N, d]
  if (kind == NormKind::kLayer) dx = dx - dz.mean(-1, true);         // [R, N, d]
  at::Tensor dgain, dshift;
  if (gain.defined()) dgain = (g * z).sum(1);  // [R, d]
  if (has_shift) dshift = g.sum(1);            // [R, d]
  return {dx * inverse, dgain, dshift};
}

// A run's row of an optional [R, d] tensor, or null.
template <typename Scalar>
const Scalar* RowOf(const at::Tensor& tensor, int64_t run) {
  if (!tensor.defined()) return nullptr;
  TORCH_CHECK(tensor.stride(1) == 1, "a norm's parameters must lie side by side");
  return tensor.const_data_ptr<Scalar>() + run * tensor.stride(0);
}

// The kernel's arguments for one run of x [R, N, d].
template <typename Scalar>
NormRows<Scalar> RowsOf(const at::Tensor& x, const NormParameters& parameters, NormKind kind,
                        double eps, int64_t run) {
  const int64_t rows = x.size(1), d = x.size(2);
  return {x.const_data_ptr<Scalar>() + run * rows * d,
          RowOf<Scalar>(parameters.gain, run),
          RowOf<Scalar>(parameters.shift, run),
          rows,
          d,
          kind,
          static_cast<Scalar>(eps)};
}

template <typename Scalar>
at::Tensor FusedForward(const at::Tensor& x, const NormParameters& parameters, NormKind kind,
                        double eps) {
  const at::Tensor rows = x.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());  // [R, N, d]
  for (int64_t run = 0; run < x.size(0); ++run) {
    NormForward(RowsOf<Scalar>(rows, parameters, kind, eps, run),
                y.mutable_data_ptr<Scalar>() + run * x.size(1) * x.size(2));
  }
  return y;
}

template <typename Scalar>
variable_list FusedBackward(const at::Tensor& x, const at::Tensor& gain, bool has_shift,
                            const at::Tensor& gradient, NormKind kind, double eps) {
  const at::Tensor rows = x.contiguous();
  const at::Tensor g = gradient.contiguous();         // [R, N, d]
  at::Tensor dx = at::empty(x.sizes(), x.options());  // [R, N, d]
  at::Tensor dgain, dshift;
  if (gain.defined()) dgain = at::zeros({x.size(0), x.size(2)}, x.options());  // [R, d]
  if (has_shift) dshift = at::zeros({x.size(0), x.size(2)}, x.options());      // [R, d]
  const auto row = [](const at::Tensor& sum, int64_t run) {
    return sum.defined() ? sum.mutable_data_ptr<Scalar>() + run * sum.size(1) : nullptr;
  };
  for (int64_t run = 0; run < x.size(0); ++run) {
    const int64_t block = run * x.size(1) * x.size(2);
    NormBackward(RowsOf<Scalar>(rows, {gain, {}}, kind, eps, run),
                 g.const_data_ptr<Scalar>() + block, dx.mutable_data_ptr<Scalar>() + block,
                 row(dgain, run), row(dshift, run));
  }
  return {dx, dgain, dshift};
}

// Fused loops on the CPU, composed operations elsewhere and for second derivatives.
class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& gain,
                            const std::optional<at::Tensor>& shift, NormKind kind, double eps) {
    const NormParameters parameters = {gain.value_or(at::Tensor()), shift.value_or(at::Tensor())};
    ctx->save_for_backward({x, parameters.gain});
    ctx->saved_data["kind"] = static_cast<int64_t>(kind);
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["has_shift"] = shift.has_value();
    const auto compute = !x.is_cpu()                      ? ComposedForward
                         : x.scalar_type() == at::kDouble ? FusedForward<double>
                                                          : FusedForward<float>;
    return compute(x, parameters, kind, eps);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const NormKind kind = static_cast<NormKind>(ctx->saved_data["kind"].toInt());
    const double eps = ctx->saved_data["eps"].toDouble();
    const bool has_shift = ctx->saved_data["has_shift"].toBool();
    const at::Tensor& x = saved[0];
    const auto compute = at::GradMode::is_enabled() || !x.is_cpu() ? ComposedBackward
                         : x.scalar_type() == at::kDouble          ? FusedBackward<double>
                                                                   : FusedBackward<float>;
    variable_list result = compute(x, saved[1], has_shift, gradients[0], kind, eps);
    result.resize(5);  // kind and eps have none
    return result;
  }
};

}  // namespace

at::Tensor Embedding(const at::Tensor& table, const at::Tensor& tokens) {
  return TableLookUp::apply(table, tokens);
}

at::Tensor Linear(const at::Tensor& x, const LinearParameters& parameters, LearningRule rule) {
  switch (rule) {
    case LearningRule::kBackprop:
      return BackpropLinear::apply(x, parameters.weight, IfDefined(parameters.bias));
  }
  TORCH_CHECK(false, "unknown learning rule");
}

at::Tensor Norm(const at::Tensor& x, const NormParameters& parameters, const NormConfig& config) {
  return NormFunction::apply(x, IfDefined(parameters.gain), IfDefined(parameters.shift),
                             config.kind, config.eps);
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
