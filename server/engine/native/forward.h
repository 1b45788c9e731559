// A run's model at given parameters, without a trainer: the loss of a batch, its gradient, and the
// scores that samples are drawn by.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_FORWARD_H_
#define ABLATE_SERVER_ENGINE_NATIVE_FORWARD_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/analyze/sequence_reader.h"
#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/layout.h"
#include "server/engine/native/batch_pass.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Parameters and buffers as the layout of a run's model and learning rule orders them (layout.h).
struct FlatPoint {
  absl::Span<const float> values;   // [layout.size]
  absl::Span<const float> buffers;  // [layout.buffer_size]
};

// What a gradient is formed by: exact backpropagation, or the run's own learning rule and the
// backward modes of its norms.
enum class Signal { kExact, kLearnt };

// One model of the family. No pass drops anything or moves running statistics. Not thread-safe: it
// has room for what it works on; one a thread.
class NativeForward {
 public:
  // At `point`, which is copied. INVALID_ARGUMENT with WhyNotNative's clause, or if the point is of
  // another size; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<NativeForward>> Make(
      const RunConfig& config, const FlatPoint& point, Signal signal = Signal::kExact,
      const Kernels& kernels = BestKernels());

  // Goes to another point, with all its readers. INVALID_ARGUMENT if that is of another size.
  absl::Status Move(const FlatPoint& point);

  // The loss and what is hit, summed over the batch's targets, as evaluation has them: BatchNorm by
  // its running statistics. RESOURCE_EXHAUSTED.
  absl::StatusOr<LossSums> Score(const TokenBatch& batch);

  // The mean loss over the batch's targets, of which it must have one, without label smoothing,
  // BatchNorm by the statistics of the whole batch; its gradient by the parameters in `gradient`
  // [layout.size]. INVALID_ARGUMENT if that is of another size; RESOURCE_EXHAUSTED.
  absl::StatusOr<double> Differentiate(const TokenBatch& batch, absl::Span<float> gradient);

  // So many sequences that grow, at least one; this must outlive them. Where there is no memory it
  // throws std::bad_alloc, as they do.
  std::unique_ptr<SequenceReader> Read(int sequences) const;

 private:
  // What a gradient is formed in.
  struct Differentiation {
    explicit Differentiation(const NativeForward& of);

    Floats gradient;
    Floats buffers;  // of which a batch's statistics move some
    const Model model;
    const PassSetting setting;
    BatchPass pass;
  };

  NativeForward(const RunConfig& config, Signal signal, const Kernels& kernels);

  const ModelConfig config_;  // without dropout
  const LearningRule rule_;
  const NormBackward norm_backward_;
  const ParameterLayout layout_;
  const Kernels& kernels_;
  Floats values_;
  Floats buffers_;
  const Model model_;
  const PassSetting scoring_;
  // Made when they are first asked for: who only reads needs neither.
  std::optional<BatchPass> score_;
  std::optional<Differentiation> differentiation_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_FORWARD_H_
