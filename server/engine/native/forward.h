// Runs a model at given parameters without a trainer: the loss of a batch, its gradient, and the
// logits for sampling.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_FORWARD_H_
#define ABLATE_SERVER_ENGINE_NATIVE_FORWARD_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/analyses/sequence_reader.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/layout.h"
#include "server/engine/native/batch_pass.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Parameters and buffers in the order of the layout of a run's model and learning rule (layout.h).
struct FlatPoint {
  absl::Span<const float> values;   // [layout.size]
  absl::Span<const float> buffers;  // [layout.buffer_size]
};

// Selects how gradients are formed: by exact backpropagation, or by the run's learning rule and its
// norms' backward modes.
enum class Signal { kExact, kLearnt };

// One model of the family. Passes have no dropout and don't update running statistics. Not
// thread-safe: it owns scratch memory; use one per thread.
class NativeForward {
 public:
  // Creates a model at `point`, which is copied. Returns INVALID_ARGUMENT with WhyNotNative's
  // clause or if the point has another size, and RESOURCE_EXHAUSTED if out of memory.
  static absl::StatusOr<std::unique_ptr<NativeForward>> Make(
      const RunConfig& config, const FlatPoint& point, Signal signal = Signal::kExact,
      const Kernels& kernels = BestKernels());

  // Sets the parameters and buffers, also for all of its readers. Returns INVALID_ARGUMENT if the
  // point has another size.
  absl::Status Move(const FlatPoint& point);

  // Returns the parameters [layout.size], to be changed in place.
  absl::Span<float> values() { return {values_.data(), static_cast<size_t>(values_.size())}; }

  // Returns the loss and the correct predictions, summed over the batch's targets, as the run's
  // evaluation does: BatchNorm uses running statistics. Returns RESOURCE_EXHAUSTED if out of
  // memory.
  absl::StatusOr<LossSums> Score(const TokenBatch& batch);

  // Returns the mean loss over the batch's targets, at least one, without label smoothing;
  // BatchNorm uses the statistics of the whole batch. Stores the gradient in `gradient`
  // [layout.size]. Returns INVALID_ARGUMENT if that has another size, and RESOURCE_EXHAUSTED if out
  // of memory.
  absl::StatusOr<double> Differentiate(const TokenBatch& batch, absl::Span<float> gradient);

  // Returns a reader of `sequences` growing sequences, at least one. This object must outlive it.
  // It and this call throw std::bad_alloc if out of memory.
  std::unique_ptr<SequenceReader> Read(int sequences) const;

 private:
  // State for computing gradients.
  struct Differentiation {
    explicit Differentiation(const NativeForward& of);

    Floats gradient;
    Floats buffers;  // a copy, because batch statistics update some of them
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
  // Created on first use, because a reader needs neither.
  std::optional<BatchPass> score_;
  std::optional<Differentiation> differentiation_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_FORWARD_H_
