#include "server/engine/torch/train/recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

// Computes one backward pass over a run's parameters.
class Differentiation {
 public:
  // Both without autograd.
  Differentiation(const RunConfig& config, const ParameterLayout& layout, const at::Tensor& values,
                  const at::Tensor& buffers)
      : model_(config.model), layout_(layout), buffers_(buffers) {
    for (const at::Tensor& view : ParameterViews(layout, values)) {
      leaves_.push_back(view.detach().requires_grad_());
    }
  }

  // Runs a pass and keeps the outputs at `hook_points`, for OutputNorm.
  void Run(Pass pass, const BatchTensors& batch, const std::vector<std::string>& hook_points) {
    std::vector<std::pair<std::string, Hook>> observers;
    outputs_.resize(hook_points.size());
    for (size_t i = 0; i < hook_points.size(); ++i) {
      observers.emplace_back(hook_points[i], Observe([this, i](const at::Tensor& x) {
                               outputs_[i] = x;
                               outputs_[i].retain_grad();
                             }));
    }
    const absl::StatusOr<Hooks> hooks = Hooks::Make(model_, std::move(observers));
    TORCH_CHECK(hooks.ok(), hooks.status().message());
    pass.hooks = &*hooks;
    const ModelParameters parameters = BindParameters(model_, layout_, leaves_, buffers_);
    MeanLoss(Logits(model_, parameters, batch, pass), batch).backward();
  }

  double OutputNorm(size_t hook_point) const { return Norm(outputs_[hook_point].grad()); }
  // Also frees their graph.
  void ForgetOutputs() { outputs_.clear(); }

  // Returns Σ a·b over the parameters of a block, in float64.
  double Product(const Differentiation& other, int block) const {
    double product = 0;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (layout_.parameters[i].block != block) continue;
      product += Dot(leaves_[i].grad(), other.leaves_[i].grad());
    }
    return product;
  }

 private:
  static double Dot(const at::Tensor& a, const at::Tensor& b) {
    if (!a.defined() || !b.defined()) return 0;
    return (a.to(at::kDouble) * b.to(at::kDouble)).sum().item<double>();
  }
  static double Norm(const at::Tensor& x) { return std::sqrt(Dot(x, x)); }

  const ModelConfig& model_;
  const ParameterLayout& layout_;
  const at::Tensor& buffers_;
  std::vector<at::Tensor> leaves_;
  std::vector<at::Tensor> outputs_;  // by hook point
};

bool Asks(const RunConfig& config, Record record) {
  const std::vector<Record>& all = config.evaluation.record;
  return std::find(all.begin(), all.end(), record) != all.end();
}

std::string KeyOf(const BlockMetrics& metrics, int block) {
  return absl::StrCat(metrics.family, "/block.", block);
}

}  // namespace

std::vector<RecordedValue> RecordGradients(const RunConfig& config, const ParameterLayout& layout,
                                           const at::Tensor& values, const at::Tensor& buffers,
                                           const BatchTensors& batch) {
  const Pass exact_pass = {.statistics = Statistics::kBatch};
  std::vector<std::string> hook_points = {HookPointName(HookPoint::kEmbedding, 0)};
  const int blocks = config.model.layers;
  for (int i = 0; i < blocks; ++i) hook_points.push_back(HookPointName(HookPoint::kBlockOutput, i));
  Differentiation exact(config, layout, values, buffers);
  exact.Run(exact_pass, batch, hook_points);
  const auto norm = [](const Differentiation& of, int block) {
    return std::sqrt(of.Product(of, block));
  };
  std::vector<RecordedValue> recorded;
  if (Asks(config, Record::kGradientByBlock)) {
    recorded.push_back({absl::StrCat(kGradientMetrics.family, "/embedding"), exact.OutputNorm(0)});
    for (int i = 0; i < blocks; ++i) {
      const auto output = static_cast<size_t>(i) + 1;
      recorded.push_back({KeyOf(kGradientMetrics, i), exact.OutputNorm(output)});
      recorded.push_back({KeyOf(kParameterGradientMetrics, i), norm(exact, i)});
    }
  }
  if (Asks(config, Record::kRuleAlignment)) {
    exact.ForgetOutputs();
    Differentiation learnt(config, layout, values, buffers);
    learnt.Run({.rule = config.training.rule,
                .norm_backward = config.model.norm.backward,
                .statistics = Statistics::kBatch},
               batch, {});
    for (int i = 0; i < blocks; ++i) {
      const double ours = norm(learnt, i), theirs = norm(exact, i);
      recorded.push_back({KeyOf(kAlignmentMetrics, i), learnt.Product(exact, i) / (ours * theirs)});
      recorded.push_back({KeyOf(kAlignmentRatioMetrics, i), ours / theirs});
    }
  }
  return recorded;
}

}  // namespace ablate::engine
