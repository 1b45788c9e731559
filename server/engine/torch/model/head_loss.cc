#include "server/engine/torch/model/head_loss.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/unrecorded.h"

// In the shapes: N targets, R of them in a chunk, V tokens, padded to V', d features.
namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A head, and the input that it is applied to. On a device its vocabulary is padded: matrix
// products with 50,257 columns are three times slower there than with 50,304.
struct AppliedHead {
  AppliedHead(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& b,
              double bound, at::ScalarType factors)
      : in(x.to(factors)),
        vocabulary(w.size(0)),
        padding(x.is_cpu() ? 0 : (kAligned - vocabulary % kAligned) % kAligned),
        weight(padding == 0 ? w.to(factors)
                            : at::constant_pad_nd(w.to(factors), {0, 0, 0, padding})),
        bias(b),
        cap(bound),
        own(w.scalar_type()) {}

  int64_t targets() const { return in.size(0); }
  // Returns the number of targets in a chunk: many, because each chunk reads and writes the whole
  // gradient of the weight.
  int64_t rows() const {
    return std::max<int64_t>(1, MostLogitsTogether(DeviceOf(in)) / weight.size(0));
  }
  // Returns the part [R, V] of a tensor [R, V'].
  at::Tensor Real(const at::Tensor& padded) const {
    return padding == 0 ? padded : padded.narrow(1, 0, vocabulary);
  }

  // Returns the logits of `count` targets, [R, V'] of the factors' type: −∞ for padding.
  at::Tensor Logits(int64_t first, int64_t count) const {
    const at::Tensor logits = in.narrow(0, first, count).mm(weight.t());
    if (bias.has_value()) Real(logits).add_(*bias);
    if (cap > 0) Real(logits).div_(cap).tanh_().mul_(cap);
    if (padding > 0) {
      logits.narrow(1, vocabulary, padding).fill_(-std::numeric_limits<double>::infinity());
    }
    return logits;
  }

  static constexpr int64_t kAligned = 64;
  const at::Tensor in;  // [N, d]
  const int64_t vocabulary, padding;
  const at::Tensor weight;  // [V', d]
  const std::optional<at::Tensor> bias;
  const double cap;
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

// With p the probabilities, ε the smoothing, z the factor of the z-loss and l the logarithm of the
// exponentials' sum, the gradient of a target's loss by its logits is p·(1 + 2zl) − ε/V, and 1 − ε
// less at the target itself; by a logit before the bound c it is 1 − (logit/c)² times that.
struct ChunkLoss {
  at::Tensor losses;    // [R, 1], of the parameters' type
  at::Tensor gradient;  // [R, V'], of the factors' type
};

ChunkLoss LossOf(const AppliedHead& head, const at::Tensor& logits, const at::Tensor& target,
                 double smoothing, double z_loss) {
  const at::Tensor log_p = logits.log_softmax(-1, head.own);               // [R, V']
  const at::Tensor log_p_of_target = log_p.gather(1, target);              // [R, 1]
  const double spread = smoothing / static_cast<double>(head.vocabulary);  // to each token
  ChunkLoss loss;
  loss.losses = log_p_of_target * (smoothing - 1);
  if (smoothing > 0) {
    loss.losses.sub_(head.Real(log_p).mean(-1, /*keepdim=*/true), smoothing);
  }
  // Softmax of rounded logits reads and writes fewer bytes than exp of log_p.
  const bool rounds = logits.scalar_type() != head.own;
  loss.gradient = rounds ? logits.softmax(-1) : log_p.exp_();
  at::Tensor of_target = log_p_of_target.exp();  // [R, 1]
  if (z_loss > 0) {
    const at::Tensor log_sum = logits.gather(1, target).to(head.own) - log_p_of_target;  // [R, 1]
    loss.losses.add_(log_sum.square(), z_loss);
    const at::Tensor factor = log_sum * (2 * z_loss) + 1;
    loss.gradient.mul_(factor);
    of_target.mul_(factor);
  }
  if (smoothing > 0) head.Real(loss.gradient).sub_(spread);
  // In the parameters' type: of a p close to 1, rounding before the difference would leave nothing.
  of_target.add_(smoothing - 1).sub_(spread);
  loss.gradient.scatter_(1, target, of_target.to(logits.scalar_type()));
  if (head.cap > 0) {
    // In the memory of the logits, which aren't needed any more.
    head.Real(loss.gradient).mul_(head.Real(logits).div_(head.cap).square_().neg_().add_(1));
  }
  return loss;
}

// Computes the sum over the counted targets and its gradients. `total` is a number that divides
// all of them, [].
class HeadLossFunction : public torch::autograd::Function<HeadLossFunction> {
  static constexpr char kTaken[] = "taken";

 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                            const std::optional<at::Tensor>& counted, const at::Tensor& total,
                            double smoothing, double z_loss, double cap, at::ScalarType factors) {
    const Unrecorded unrecorded;
    const AppliedHead head(x, weight, bias, cap, factors);
    const at::Tensor dx = at::empty_like(x);
    at::Tensor dw = at::empty({head.weight.size(0), x.size(1)}, weight.options());
    std::optional<at::Tensor> db;
    if (bias.has_value()) db = at::zeros_like(*bias);
    const at::Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
    VisitChunks(head, [&](int64_t first, int64_t count) {
      const at::Tensor target = targets.narrow(0, first, count).unsqueeze(1);  // [R, 1]
      const ChunkLoss loss = LossOf(head, head.Logits(first, count), target, smoothing, z_loss);
      if (counted.has_value()) {
        const at::Tensor counts = counted->narrow(0, first, count).unsqueeze(1);  // [R, 1]
        loss.losses.mul_(counts);
        loss.gradient.mul_(counts);
      }
      sum.add_(loss.losses.sum(at::kDouble));
      if (db.has_value()) db->add_(head.Real(loss.gradient).sum(0, false, head.own));
      dx.narrow(0, first, count).copy_(loss.gradient.mm(head.weight));
      AddProduct(first == 0, loss.gradient.t(), head.in.narrow(0, first, count), dw);
    });
    variable_list saved = {total, dx, dw.narrow(0, 0, head.vocabulary)};
    if (db.has_value()) saved.push_back(*db);
    ctx->save_for_backward(saved);
    return sum.div_(total).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const bool once = !at::GradMode::is_enabled() && ctx->saved_data.count(kTaken) == 0;
    TORCH_CHECK(once, "the head's loss can be differentiated once");
    ctx->saved_data[kTaken] = true;
    const Unrecorded unrecorded;
    variable_list of_inputs = ctx->get_saved_variables();
    const at::Tensor factor = gradients[0].to(at::kDouble).div(of_inputs[0]);
    of_inputs.erase(of_inputs.begin());
    // In place: a copy would be as large as the head.
    for (const at::Tensor& gradient : of_inputs) gradient.mul_(factor);
    of_inputs.resize(10);
    return of_inputs;
  }
};

}  // namespace

at::Tensor MeanHeadLoss(const at::Tensor& x, const CappedHead& head, const BatchTensors& batch,
                        const Objective& objective, std::optional<at::ScalarType> factors) {
  at::Tensor total;  // [], float64
  if (objective.targets.defined()) {
    total = objective.targets.to(at::kDouble);
  } else if (batch.counted.defined()) {
    total = batch.counted.sum(at::kDouble);
  } else {
    total = at::full({}, batch.targets.numel(), batch.targets.options().dtype(at::kDouble));
  }
  const LinearParameters& linear = head.linear;
  return HeadLossFunction::apply(x, linear.weight, IfDefined(linear.bias), batch.targets,
                                 IfDefined(batch.counted), total, objective.label_smoothing,
                                 objective.z_loss, head.cap,
                                 factors.value_or(linear.weight.scalar_type()));
}

at::Tensor ScoreHead(const at::Tensor& x, const CappedHead& capped, const BatchTensors& batch,
                     std::optional<at::ScalarType> factors) {
  const at::NoGradGuard no_grad;
  const Unrecorded unrecorded;
  const LinearParameters& linear = capped.linear;
  const AppliedHead head(x, linear.weight, IfDefined(linear.bias), capped.cap,
                         factors.value_or(linear.weight.scalar_type()));
  at::Tensor score = at::zeros({3}, x.options().dtype(at::kDouble));
  VisitChunks(head, [&](int64_t first, int64_t count) {
    BatchTensors chunk;
    chunk.targets = batch.targets.narrow(0, first, count);
    if (batch.counted.defined()) chunk.counted = batch.counted.narrow(0, first, count);
    score.add_(ScoreLogits(head.Logits(first, count).to(head.own), chunk));
  });
  return score;
}

}  // namespace ablate::engine
