// Computes gradients over everything that an analysis reads by one backward pass; a site's gradient
// is that of a zero added there.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_GRADIENTS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_GRADIENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "server/engine/analyze/material.h"
#include "server/engine/model/layers.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {

struct PlainGradients {
  std::vector<at::Tensor> parameters;           // one per parameter of the layout, float64
  std::vector<std::vector<at::Tensor>> sites;   // [site][batch], of [n, features], without padding
  std::vector<std::vector<at::Tensor>> values;  // likewise, the activations there
};

inline PlainGradients PlainGradientsOf(const AnalysisRequest& request, Pass pass,
                                       const std::vector<std::string>& sites) {
  const Material material = *ReadMaterial(request);
  const SubjectModel& subject = material.subjects[0];
  const Leaves leaves(subject);
  std::vector<std::vector<at::Tensor>> zeros(sites.size());
  std::vector<BatchTensors> batches;
  PlainGradients plain;
  plain.values.resize(sites.size());
  plain.sites.resize(sites.size());
  at::Tensor loss = at::zeros({}, subject.values.options());
  double targets = 0;
  for (const TokenBatch& batch : material.batches) {
    const BatchTensors& read = batches.emplace_back(BatchOf(subject, batch));
    std::vector<std::pair<std::string, Tap>> taps;
    for (size_t i = 0; i < sites.size(); ++i) {
      taps.emplace_back(sites[i], [&, i](const at::Tensor& x) {
        plain.values[i].push_back(RealRows(x.detach().to(at::kDouble), read));
        zeros[i].push_back(at::zeros_like(x.detach()).requires_grad_());
        return x + zeros[i].back();
      });
    }
    const Taps made = *Taps::Make(subject.config.model, std::move(taps));
    pass.taps = &made;
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
  for (size_t i = 0; i < sites.size(); ++i) {
    for (size_t batch = 0; batch < batches.size(); ++batch) {
      plain.sites[i].push_back(RealRows(gradient(zeros[i][batch]), batches[batch]));
    }
  }
  return plain;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_GRADIENTS_H_
