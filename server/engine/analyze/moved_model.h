// A model that is scored at other parameters than its own.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_MOVED_MODEL_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_MOVED_MODEL_H_

#include <ATen/ATen.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/analyze/material.h"
#include "server/engine/data/batches.h"
#include "server/engine/native/forward.h"

namespace ablate::engine {

// The forward pass is native where that computes such a run, whatever trained it; else LibTorch's.
// Its buffers stay those of the subject. Not thread-safe.
class MovedModel {
 public:
  // At the subject's own parameters. RESOURCE_EXHAUSTED. `material` outlives it.
  static absl::StatusOr<MovedModel> Make(const Material& material, const SubjectModel& subject);

  // Goes to `point` [P], in the subject's precision. Throws c10::Error.
  void Move(const at::Tensor& point);

  // The loss summed over the batch's targets, as an evaluation of the run has it. Throws
  // c10::Error, also if the analysis is to stop, and std::bad_alloc.
  double Loss(const TokenBatch& batch);

 private:
  MovedModel(const Material& material, const SubjectModel& subject);

  native::FlatPoint PointOf(const at::Tensor& values) const;

  const Material* material_;
  SubjectModel subject_;  // with parameters of its own where the pass is LibTorch's
  std::unique_ptr<native::NativeForward> native_;  // null: LibTorch's
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_MOVED_MODEL_H_
