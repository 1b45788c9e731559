#include "server/engine/analyze/gradients.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/engine/analyze/large_vectors.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// float32 has no number below 1e-38, because subnormal numbers are 0.
constexpr double kSmallNorm = 1e-30;
// Exponent of two that the largest norm is then scaled to. Products of several gradients still fit.
constexpr double kLargeExponent = 80;
constexpr double kMostExponent = 120;  // the factor itself is a float32

// Returns the smallest and the largest norm.
std::pair<double, double> RangeOfNorms(const std::vector<at::Tensor>& gradients) {
  double least = INFINITY, most = 0;
  for (const at::Tensor& gradient : gradients) {
    const double norm = NormOf(gradient);
    least = std::min(least, norm);
    most = std::isfinite(norm) ? std::max(most, norm) : INFINITY;
  }
  return {least, most};
}

// Returns the gradients of `loss` times a factor, divided by the factor, in float64 if it isn't 1;
// 0 for missing ones.
std::vector<at::Tensor> GradientsAt(double factor, const at::Tensor& loss,
                                    const std::vector<at::Tensor>& inputs, bool keep_graph) {
  std::vector<at::Tensor> raw =
      torch::autograd::grad({loss}, inputs, {at::full_like(loss, factor)}, keep_graph,
                            /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < raw.size(); ++i) {
    at::Tensor& gradient = raw[i];  // replaced one by one, for memory
    if (!gradient.defined()) {
      gradient = at::zeros(inputs[i].sizes(), inputs[i].options());
    }
    if (factor != 1) gradient = gradient.to(at::kDouble) / factor;
  }
  return raw;
}

}  // namespace

Pass PassOf(const AnalysisOptions& options, GradientSignal signal, const RunConfig& config) {
  Pass pass;
  if (ReadsTrainingBatches(options, config.model)) pass.statistics = Statistics::kBatch;
  if (signal == GradientSignal::kExact) return pass;
  pass.rule = config.training.rule;
  pass.norm_backward = config.model.norm.backward;
  return pass;
}

Gradients GradientsOf(const AnalysisContext& analysis, const SubjectModel& subject,
                      const TokenBatch& batch, Pass pass, WantedGradients wanted) {
  const Leaves leaves(subject);
  const size_t hook_points = wanted.hook_points.size();
  std::vector<at::Tensor> inputs(hook_points);
  for (size_t i = 0; i < hook_points; ++i) {
    // A tensor that depends on no parameter, after the cuts of direct feedback alignment, becomes a
    // leaf of its own.
    wanted.observers.emplace_back(wanted.hook_points[i], [&inputs, i](const at::Tensor& x) {
      inputs[i] = x.requires_grad() ? x : x.detach().requires_grad_();
      return inputs[i];
    });
  }
  const Hooks hooks = HooksOf(analysis, subject.config.model, std::move(wanted.observers));
  pass.hooks = &hooks;
  const BatchTensors tensors = BatchOf(subject, batch);
  const at::Tensor logits = Logits(subject.config.model, leaves.parameters, tensors, pass);
  // A prompt of one token has neither target nor gradient.
  const double targets = std::max(TargetsIn(analysis.batches), 1.0);
  const at::Tensor loss = TokenLosses(logits, tensors).sum() / targets;
  if (wanted.parameters) inputs.insert(inputs.end(), leaves.all.begin(), leaves.all.end());

  const bool single = subject.values.scalar_type() == at::kFloat;
  double factor = 1;
  std::vector<at::Tensor> all = GradientsAt(factor, loss, inputs, single || wanted.rounding);
  const auto [least, most] = RangeOfNorms(all);
  if (single && least < kSmallNorm && most > 0 && std::isfinite(most)) {
    const double exponent = std::min(kLargeExponent - std::ceil(std::log2(most)), kMostExponent);
    std::vector<at::Tensor> again = GradientsAt(std::exp2(exponent), loss, inputs, wanted.rounding);
    if (std::isfinite(RangeOfNorms(again).second)) {
      all = std::move(again);
      factor = std::exp2(exponent);
    }
  }

  Gradients gradients;
  if (wanted.rounding) {
    const std::vector<at::Tensor> others = GradientsAt(3 * factor, loss, inputs, false);
    for (size_t i = hook_points; i < all.size(); ++i) {
      gradients.rounding.push_back(NormOf(all[i].to(at::kDouble) - others[i]));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (i < hook_points) {
      gradients.hook_points.push_back(all[i].to(at::kDouble));
    } else {
      gradients.parameters.push_back(std::move(all[i]));
    }
  }
  return gradients;
}

}  // namespace ablate::engine
