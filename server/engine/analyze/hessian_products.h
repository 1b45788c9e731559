// Multiplies the Hessian of a model's mean loss by vectors, exactly, by differentiating twice.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_HESSIAN_PRODUCTS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_HESSIAN_PRODUCTS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {

// Memory limit of the kept gradient graphs of all batches. A product is about twice as fast if its
// batch's graph was kept.
inline constexpr uint64_t kGraphBytes = uint64_t{1} << 30;
// Returns kGraphBytes, or eight times the parameters if they take more: an analysis of a large
// model holds several such vectors anyway.
uint64_t KeptGraphBytes(const SubjectModel& subject);

// Returns roughly the bytes of a batch's graph.
uint64_t GraphBytes(const SubjectModel& subject, const TokenBatch& batch);

// A batch's contribution to the loss, the mean over all targets of the analysis, and to its
// gradient.
struct BatchDerivative {
  double loss = 0;
  at::Tensor gradient;  // [P], in the precision of the subject
};

// Computes losses, gradients and Hessian products. Uses backpropagation, exact norms and
// BatchNorm's running statistics, independent of the run's learning rule. Not thread-safe.
// `analysis` and `subject` must outlive it.
class HessianProducts {
 public:
  // Keeps the graphs of the first batches that fit into `kept_bytes`, by default KeptGraphBytes.
  HessianProducts(const AnalysisContext& analysis, const SubjectModel& subject,
                  std::optional<uint64_t> kept_bytes = std::nullopt);

  // These throw c10::Error, also if the analysis must stop.
  BatchDerivative Differentiate(size_t batch);
  // Returns the batch's contribution to H·v; both are [P] in the precision of the subject. The bits
  // don't depend on whether the graph was kept.
  at::Tensor Multiply(size_t batch, const at::Tensor& vector);

  // Number of targets in all batches.
  double targets() const { return targets_; }

 private:
  // A batch's gradient as a function of the leaves.
  struct Graph {
    at::Tensor loss;
    std::vector<at::Tensor> gradient;  // by leaf; undefined if the loss doesn't depend on it
  };

  Graph MakeGraph(size_t batch) const;
  // Returns the kept graph of a batch, which is made at its first use, or a new one.
  Graph GraphOf(size_t batch);
  at::Tensor Flat(const std::vector<at::Tensor>& by_leaf) const;

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const double targets_;
  const Leaves leaves_;
  std::vector<Graph> kept_;  // graphs of the first batches, empty until first used
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_HESSIAN_PRODUCTS_H_
