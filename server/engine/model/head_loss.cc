#include "server/engine/model/head_loss.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "server/engine/layout.h"
#include "server/engine/model/unrecorded.h"

// In the shapes: N targets, R of them in a chunk, V tokens, d features.
namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A head, and the batch that it is applied to.
struct AppliedHead {
  AppliedHead(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& b,
              at::ScalarType factors)
      : in(x.to(factors)), weight(w.to(factors)), bias(b), own(w.scalar_type()) {}

  int64_t targets() const { return in.size(0); }
  int64_t vocabulary() const { return weight.size(0); }
  // Returns the number of targets in a chunk: many, because each chunk reads and writes the whole
  // gradient of the weight.
  int64_t rows() const { return std::max<int64_t>(1, kLogitsTogether / vocabulary()); }

  // Returns the logits of `count` targets, [R, V].
  at::Tensor Logits(int64_t first, int64_t count) const {
    at::Tensor logits = in.narrow(0, first, count).mm(weight.t()).to(own);
    if (bias.has_value()) logits.add_(*bias);
    return logits;
  }

  const at::Tensor in;      // [N, d]
  const at::Tensor weight;  // [V, d]
  const std::optional<at::Tensor> bias;
  const at::ScalarType own;  // type of the parameters
};

// Calls visit(first target, number of targets) for every chunk.
template <typename Visit>
void VisitChunks(const AppliedHead& head, const Visit& visit) {
  for (int64_t first = 0; first < head.targets(); first += head.rows()) {
    visit(first, std::min(head.rows(), head.targets() - first));
  }
}

// Adds the product of a and b to `sum`, or sets it there if it is the `first`.
void AddProduct(bool first, const at::Tensor& a, const at::Tensor& b, at::Tensor& sum) {
  if (a.scalar_type() == sum.scalar_type()) {
    first ? at::mm_out(sum, a, b) : sum.addmm_(a, b);
  } else {
    first ? sum.copy_(a.mm(b)) : sum.add_(a.mm(b));
  }
}

// With p the probabilities, ε the smoothing and c the weight of a target (0 if it doesn't count,
// else 1/total), the gradient of the loss by a target's logits is c·(p − ε/V), and (1 − ε)·c less
// at the target itself.
class HeadLossFunction : public torch::autograd::Function<HeadLossFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                            const std::optional<at::Tensor>& counted, double total,
                            double smoothing, at::ScalarType factors) {
    const Unrecorded unrecorded;
    const AppliedHead head(x, weight, bias, factors);
    at::Tensor dx = at::empty_like(x), dw = at::empty_like(weight);
    std::optional<at::Tensor> db;
    if (bias.has_value()) db = at::zeros_like(*bias);
    at::Tensor loss = at::zeros({}, x.options().dtype(at::kDouble));
    VisitChunks(head, [&](int64_t first, int64_t count) {
      const at::Tensor target = targets.narrow(0, first, count).unsqueeze(1);  // [R, 1]
      at::Tensor log_p = head.Logits(first, count).log_softmax(-1);            // [R, V]
      at::Tensor losses = log_p.gather(1, target).mul_(smoothing - 1);         // [R, 1]
      if (smoothing > 0) losses.sub_(log_p.mean(-1, /*keepdim=*/true).mul_(smoothing));
      at::Tensor gradient = log_p.exp_();
      gradient.scatter_add_(1, target, at::full_like(losses, smoothing - 1));
      if (smoothing > 0) gradient.sub_(smoothing / static_cast<double>(head.vocabulary()));
      if (counted.has_value()) {
        const at::Tensor counts = counted->narrow(0, first, count).unsqueeze(1);  // [R, 1]
        losses.mul_(counts);
        gradient.mul_(counts.div(total));
      } else {
        gradient.div_(total);
      }
      loss.add_(losses.sum(at::kDouble));
      if (db.has_value()) db->add_(gradient.sum(0));
      const at::Tensor factor = gradient.to(factors);
      dx.narrow(0, first, count).copy_(factor.mm(head.weight));
      AddProduct(first == 0, factor.t(), head.in.narrow(0, first, count), dw);
    });
    variable_list saved = {dx, dw};
    if (db.has_value()) saved.push_back(*db);
    ctx->save_for_backward(saved);
    return loss.div_(total).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "the head's loss can be differentiated once");
    const Unrecorded unrecorded;
    variable_list of_inputs = ctx->get_saved_variables();
    // At the root of a graph the factor is 1.
    if (const double factor = gradients[0].item<double>(); factor != 1) {
      for (at::Tensor& gradient : of_inputs) gradient = gradient * factor;
    }
    of_inputs.resize(8);
    return of_inputs;
  }
};

}  // namespace

at::Tensor MeanHeadLoss(const at::Tensor& x, const LinearParameters& head,
                        const BatchTensors& batch, const Objective& objective,
                        std::optional<at::ScalarType> factors) {
  double total = static_cast<double>(batch.targets.numel());
  if (objective.targets.defined()) {
    total = objective.targets.item<double>();
  } else if (batch.counted.defined()) {
    total = batch.counted.sum(at::kDouble).item<double>();
  }
  return HeadLossFunction::apply(x, head.weight, IfDefined(head.bias), batch.targets,
                                 IfDefined(batch.counted), total, objective.label_smoothing,
                                 factors.value_or(head.weight.scalar_type()));
}

at::Tensor ScoreHead(const at::Tensor& x, const LinearParameters& parameters,
                     const BatchTensors& batch, std::optional<at::ScalarType> factors) {
  const at::NoGradGuard no_grad;
  const Unrecorded unrecorded;
  const AppliedHead head(x, parameters.weight, IfDefined(parameters.bias),
                         factors.value_or(parameters.weight.scalar_type()));
  at::Tensor score = at::zeros({3}, x.options().dtype(at::kDouble));
  VisitChunks(head, [&](int64_t first, int64_t count) {
    BatchTensors chunk;
    chunk.targets = batch.targets.narrow(0, first, count);
    if (batch.counted.defined()) chunk.counted = batch.counted.narrow(0, first, count);
    score.add_(ScoreLogits(head.Logits(first, count), chunk));
  });
  return score;
}

}  // namespace ablate::engine
