// What a kind of analysis is to the machinery around it: pieces that are made one after the other,
// the sums that they leave, and a result at the end.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_COMPUTATION_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_COMPUTATION_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/material.h"

namespace ablate::engine {

// A tensor that pieces change, on the CPU, float64, float32 or int64, of a shape that does not
// change.
struct StateTensor {
  std::string name;
  at::Tensor tensor;
  // How many of its first rows later pieces need, and are saved; −1: all.
  int64_t rows = -1;
};

class Computation {
 public:
  virtual ~Computation() = default;

  // At least one; the same for equal requests.
  virtual int64_t pieces() const = 0;
  // Makes one piece, all before it being made. It depends on these through State() alone, and
  // changes that only once nothing of the piece can fail any more. May throw c10::Error.
  virtual void Add(int64_t piece) = 0;
  // Everything that pieces change, always the same tensors: whoever continues copies into them.
  virtual std::vector<StateTensor> State() = 0;
  // Of all pieces.
  virtual AnalysisResult Finish() = 0;
};

using MadeComputation = absl::StatusOr<std::unique_ptr<Computation>>;

// One a kind, in the file of its name. `material` outlives what is made. INVALID_ARGUMENT or
// FAILED_PRECONDITION for what AnalysisKind::check can't know; may throw c10::Error.
MadeComputation Compute(const SpectrumOptions& options, const Material& material);
MadeComputation Compute(const CkaOptions& options, const Material& material);
MadeComputation Compute(const ActivationsOptions& options, const Material& material);
MadeComputation Compute(const WeightsOptions& options, const Material& material);
MadeComputation Compute(const CaptureOptions& options, const Material& material);
MadeComputation Compute(const LossLandscapeOptions& options, const Material& material);
MadeComputation Compute(const HessianOptions& options, const Material& material);
MadeComputation Compute(const GradientFlowOptions& options, const Material& material);
MadeComputation Compute(const GradientAlignmentOptions& options, const Material& material);
MadeComputation Compute(const NormJacobianOptions& options, const Material& material);
MadeComputation Compute(const NormStatisticsOptions& options, const Material& material);
MadeComputation Compute(const NormResponseOptions& options, const Material& material);
MadeComputation Compute(const AttentionOptions& options, const Material& material);
MadeComputation Compute(const RemoveOptions& options, const Material& material);
MadeComputation Compute(const TrajectoryOptions& options, const Material& material);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_COMPUTATION_H_
