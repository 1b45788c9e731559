// Interface between the run loop and a trainer's computation: one update, one evaluation batch, and
// the bytes of the run's parameters and state. Torch-free. The loop is the same for every backend.
#ifndef ABLATE_SERVER_ENGINE_CORE_BACKEND_H_
#define ABLATE_SERVER_ENGINE_CORE_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "base/status_macros.h"
#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine {

// Identifies a backend. Recorded with its output, because only the same backend may continue a
// state.
struct BackendIdentity {
  std::string trainer;      // "torch"
  std::string environment;  // what else its bits depend on, as Environment()
  std::string library;      // its key in the metadata of checkpoints: "torch_version"
  std::string library_version;
};

struct UpdateRequest {
  const TokenBatch& batch;
  uint32_t step = 0;         // updates made before this one
  double learning_rate = 0;  // of this update
  double factor = 1;         // the schedule's: learning_rate per peak
};

struct UpdateResult {
  double loss = 0;           // nats per token
  double gradient_norm = 0;  // before clipping
  bool made = false;         // false if loss or norm isn't finite; the run is then unchanged bit
                             // for bit
};

// Sums of an evaluation over its batches so far.
struct EvaluationSums {
  size_t batches = 0;
  double loss = 0;     // over tokens, in nats
  double correct = 0;  // targets that have the highest logit
  double tokens = 0;

  // Adds the sums over `count` batches.
  void Add(size_t count, double more_loss, double more_correct, double more_tokens) {
    *this = {batches + count, loss + more_loss, correct + more_correct, tokens + more_tokens};
  }
};

// The largest number of updates and of evaluation batches that a backend wants in one call. A
// device computes a block without waiting for the host in between; a CPU gains nothing by it.
struct BlockSizes {
  size_t updates = 1;
  size_t evaluation_batches = 1;
};

// A value of the metric `key`.
struct RecordedValue {
  std::string key;
  double value = 0;  // may be non-finite
};

// Bytes of one tensor of a run, little-endian.
struct NamedBytes {
  std::string name;
  absl::string_view bytes;
};

struct RunTensors {
  TensorType type = TensorType::kF32;  // of all tensors
  absl::string_view parameters;        // in layout order
  absl::string_view buffers;
  std::vector<NamedBytes> slots;  // each as large as the parameters, in the order of OptimizerSlots
};

// The parameters that an evaluation uses.
enum class Evaluated {
  kCurrent,     // the run's parameters
  kEmaWeights,  // the EMA weights, kept if training.ema is above 0
};

// Computes one run. Not thread-safe. Errors: RESOURCE_EXHAUSTED (out of memory; the call has
// changed nothing), UNAVAILABLE (this process has lost the device), INTERNAL.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendIdentity& identity() const = 0;

  // Returns the sizes of the next calls; they may change from call to call. The run's bits don't
  // depend on how its updates are cut into calls.
  virtual BlockSizes blocks() const { return {}; }

  virtual absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) = 0;

  // Makes consecutive updates, and appends the result of each. Ends at the first that isn't made,
  // whose result is the last. After an error, `results` has those that were made.
  virtual absl::Status StepBlock(absl::Span<const UpdateRequest> updates,
                                 std::vector<UpdateResult>* results) {
    for (const UpdateRequest& update : updates) {
      ASSIGN_OR_RETURN(const UpdateResult result, Step(update));
      results->push_back(result);
      if (!result.made) break;
    }
    return absl::OkStatus();
  }

  // Adds the next held-out batches of an evaluation to `sums`; sums->batches counts those added
  // before. Every evaluation reads the same batches in the same order.
  virtual absl::Status Evaluate(Evaluated what, absl::Span<const TokenBatch> batches,
                                EvaluationSums* sums) = 0;

  // Returns the metrics of the run's evaluation.record for a held-out batch. Doesn't change the
  // run.
  virtual absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) = 0;

  // Returns the run's tensors, valid until the next call of any function.
  virtual absl::StatusOr<RunTensors> Tensors() = 0;
  // Sets the run's tensors. They have the run's type and sizes, and slots in its order.
  virtual absl::Status SetTensors(const RunTensors& tensors) = 0;
};

// Creates the backend of a run, with its initial parameters.
using BackendFactory =
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Backend>>(const RunConfig& config)>;

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_BACKEND_H_
