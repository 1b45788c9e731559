// Computes gradients over everything that an analysis reads by one backward pass; a hook point's
// gradient is that of a zero added there.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_GRADIENTS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_GRADIENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "server/engine/analyze/analysis_context.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {

struct PlainGradients {
  std::vector<at::Tensor> parameters;  // one per parameter of the layout, float64
  std::vector<std::vector<at::Tensor>>
      hook_points;  // [hook point][batch], of [n, features], without padding
  std::vector<std::vector<at::Tensor>> values;  // likewise, the activations there
};

inline PlainGradients PlainGradientsOf(const AnalysisRequest& request, Pass pass,
                                       const std::vector<std::string>& hook_points) {
  const AnalysisContext analysis = *ReadAnalysisContext(request);
  const SubjectModel& subject = analysis.subjects[0];
  const Leaves leaves(subject);
  std::vector<std::vector<at::Tensor>> zeros(hook_points.size());
  std::vector<BatchTensors> batches;
  PlainGradients plain;
  plain.values.resize(hook_points.size());
  plain.hook_points.resize(hook_points.size());
  at::Tensor loss = at::zeros({}, subject.values.options());
  double targets = 0;
  for (const TokenBatch& batch : analysis.batches) {
    const BatchTensors& read = batches.emplace_back(BatchOf(subject, batch));
    std::vector<std::pair<std::string, Hook>> hooks;
    for (size_t i = 0; i < hook_points.size(); ++i) {
      hooks.emplace_back(hook_points[i], [&, i](const at::Tensor& x) {
        plain.values[i].push_back(RealRows(x.detach().to(at::kDouble), read));
        zeros[i].push_back(at::zeros_like(x.detach()).requires_grad_());
        return x + zeros[i].back();
      });
    }
    const Hooks made = *Hooks::Make(subject.config.model, std::move(hooks));
    pass.hooks = &made;
    loss =
        loss + TokenLosses(Logits(subject.config.model, leaves.parameters, read, pass), read).sum();
    for (const int64_t target : batch.targets) targets += target == TokenBatch::kIgnored ? 0 : 1;
  }
  (loss / targets).backward();
  const auto gradient = [](const at::Tensor& leaf) {
    return leaf.grad().defined() ? leaf.grad().to(at::kDouble)
                                 : at::zeros_like(leaf.detach(), at::kDouble);
  };
  for (const at::Tensor& leaf : leaves.all) plain.parameters.push_back(gradient(leaf));
  for (size_t i = 0; i < hook_points.size(); ++i) {
    for (size_t batch = 0; batch < batches.size(); ++batch) {
      plain.hook_points[i].push_back(RealRows(gradient(zeros[i][batch]), batches[batch]));
    }
  }
  return plain;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_GRADIENTS_H_
