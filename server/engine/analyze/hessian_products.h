// The Hessian of a model's mean loss times vectors, exactly, by differentiating twice.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_HESSIAN_PRODUCTS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_HESSIAN_PRODUCTS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/analyze/material.h"

namespace ablate::engine {

// Memory that graphs of gradients may take, of all batches together: a product is about twice as
// fast where its gradient's graph was kept.
inline constexpr uint64_t kGraphBytes = uint64_t{1} << 30;

// Bytes that such a graph takes of a batch, roughly.
uint64_t GraphBytes(const SubjectModel& subject, const TokenBatch& batch);

// A batch's summand of the loss, the mean over all of the material's targets, and of its gradient.
struct BatchDerivative {
  double loss = 0;
  at::Tensor gradient;  // [P], in the precision of the subject
};

// By backprop through exact norms, BatchNorm by its running statistics, whatever the run learns by.
// Not thread-safe. Both must outlive it.
class HessianProducts {
 public:
  HessianProducts(const Material& material, const SubjectModel& subject,
                  uint64_t kept_bytes = kGraphBytes);

  // These throw c10::Error, also if the analysis is to stop.
  BatchDerivative Differentiate(size_t batch);
  // The batch's summand of H·v; both [P] in the precision of the subject. The same bits whether the
  // graph was kept or not.
  at::Tensor Multiply(size_t batch, const at::Tensor& vector);

  // Targets of all batches.
  double targets() const { return targets_; }

 private:
  // A batch's gradient by the leaves, as a function of them.
  struct Graph {
    at::Tensor loss;
    std::vector<at::Tensor> gradient;  // by leaf; undefined where the loss does not depend on it
  };

  Graph MakeGraph(size_t batch) const;
  at::Tensor Flat(const std::vector<at::Tensor>& by_leaf) const;

  const Material& material_;
  const SubjectModel& subject_;
  const double targets_;
  const Leaves leaves_;
  std::vector<Graph> kept_;  // of the first batches, empty until it is asked for
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_HESSIAN_PRODUCTS_H_
