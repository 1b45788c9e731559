// Computes gradients of the mean loss over everything that an analysis reads, one batch at a time.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_GRADIENTS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_GRADIENTS_H_

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {

// Returns the arguments of an analysis's pass, with exact gradients or the run's own. BatchNorm
// uses batch statistics if the analysis reads training batches (inputs.h), because with running
// statistics all backward modes are equal.
Pass PassOf(const AnalysisOptions& options, GradientSignal signal, const RunConfig& config);

// Selects the gradients to compute.
struct WantedGradients {
  bool parameters = false;
  std::vector<std::string> hook_points;  // gradients of the activations after these hook points
  // Hooks that observe the same pass.
  std::vector<std::pair<std::string, Hook>> observers;
  bool rounding = false;  // of the parameters' gradients; takes another backward pass
};

// Gradients; 0 if the loss doesn't depend on a tensor.
struct Gradients {
  // One per parameter of the layout, [shape…]. In the subject's precision, or float64 if the loss
  // was scaled.
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> hook_points;  // one per hook point, [n, features], float64
  // Size of the rounding errors in each parameter's gradient: the norm of its difference
  // to a third of the gradient of three times the loss, which is rounded differently.
  std::vector<double> rounding;
};

// Returns the contribution of `batch` to the gradients of the mean over all targets: a summand of
// the parameters' gradients, and the complete gradients of hook points, which no other batch has.
// `pass` needs no hooks. If float32 would lose the smallest gradients, the loss is scaled by a
// power of two and the gradients are divided by it at the end.
Gradients GradientsOf(const AnalysisContext& analysis, const SubjectModel& subject,
                      const TokenBatch& batch, Pass pass, WantedGradients wanted);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_GRADIENTS_H_
