// Interface of a kind of analysis: pieces computed in order, the state that they accumulate, and a
// result at the end.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_COMPUTATION_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_COMPUTATION_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {

// A CPU tensor that pieces update: float64, float32 or int64, of constant shape.
struct StateTensor {
  std::string name;
  at::Tensor tensor;
  // Number of leading rows that later pieces need and that are saved; −1: all.
  int64_t rows = -1;
};

// Computes one kind of analysis in pieces. Not thread-safe.
class Computation {
 public:
  virtual ~Computation() = default;

  // Number of pieces, at least one; the same for equal requests.
  virtual int64_t pieces() const = 0;
  // Computes one piece, after all earlier ones. It depends on them through State() alone, and
  // changes the state only once nothing else in the piece can fail. May throw c10::Error.
  virtual void Add(int64_t piece) = 0;
  // Returns everything that pieces change, always the same tensors; a caller that resumes copies
  // values into them.
  virtual std::vector<StateTensor> State() = 0;
  // Returns the result. Call it after all pieces.
  virtual AnalysisResult Finish() = 0;
};

using MadeComputation = absl::StatusOr<std::unique_ptr<Computation>>;

// Create the computation of a kind; each is in the file of its name. `analysis` must outlive the
// result. Return INVALID_ARGUMENT or FAILED_PRECONDITION for problems that AnalysisKind::check
// can't see; may throw c10::Error.
MadeComputation Compute(const SpectrumOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const CkaOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const ActivationsOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const WeightsOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const CaptureOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const LossLandscapeOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const HessianOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const GradientFlowOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const GradientAlignmentOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const NormJacobianOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const NormStatisticsOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const NormResponseOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const AttentionOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const RemoveOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const TrajectoryOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const LogitLensOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const PredictionsOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const InductionOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const PatchOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const RobustnessOptions& options, const AnalysisContext& analysis);
MadeComputation Compute(const ProbeOptions& options, const AnalysisContext& analysis);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_COMPUTATION_H_
