// Evaluates the loss of a model at other parameters than its own.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_MOVED_MODEL_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_MOVED_MODEL_H_

#include <ATen/ATen.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/analyze/analysis_context.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/native/forward.h"

namespace ablate::engine {

// Uses the native forward pass if it supports the run, independent of the trainer, and LibTorch's
// otherwise. Buffers remain the subject's. Not thread-safe.
class MovedModel {
 public:
  // Starts at the subject's own parameters. Returns RESOURCE_EXHAUSTED if out of memory. `analysis`
  // must outlive the result.
  static absl::StatusOr<MovedModel> Make(const AnalysisContext& analysis,
                                         const SubjectModel& subject);

  // Returns the parameters [P], in the subject's precision, to be changed in place.
  const at::Tensor& values() const { return values_; }

  // Returns the loss summed over the batch's targets, as the run's evaluation computes it. Throws
  // std::bad_alloc, and c10::Error, also if the analysis must stop.
  double Loss(const TokenBatch& batch);

 private:
  MovedModel(const AnalysisContext& analysis, const SubjectModel& subject);

  const AnalysisContext* analysis_;
  SubjectModel subject_;                           // at values_ if LibTorch computes the pass
  std::unique_ptr<native::NativeForward> native_;  // null: LibTorch's pass
  at::Tensor values_;                              // of native_, or its own
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_MOVED_MODEL_H_
