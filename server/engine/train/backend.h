// What the run loop needs to train a run: one update, one batch of an evaluation, and the bytes of
// the run's parameters and state. Torch-free: each way to train is a backend, and the loop
// is the same for all.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_BACKEND_H_
#define ABLATE_SERVER_ENGINE_TRAIN_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/safetensors.h"

namespace ablate::engine {

// Recorded with what a backend makes: states are continued by the same one only.
struct BackendIdentity {
  std::string trainer;      // "torch"
  std::string environment;  // what bits depend on beside it, as Environment()
  std::string library;      // its key in a checkpoint's metadata: "torch_version"
  std::string library_version;
};

struct UpdateRequest {
  const TokenBatch& batch;
  uint32_t step = 0;         // updates made before this one
  double learning_rate = 0;  // of this update
};

struct UpdateResult {
  double loss = 0;           // nats a token
  double gradient_norm = 0;  // before clipping
  bool made = false;         // false if loss or norm is no number: the run is bit for bit as before
};

// An evaluation that has come as far as some batch.
struct EvaluationSums {
  size_t batches = 0;
  double loss = 0;  // over tokens, in nats
  double hits = 0;  // tokens whose score is the highest
  double tokens = 0;
};

// A value of the metric `key`.
struct RecordedValue {
  std::string key;
  double value = 0;  // may be non-finite
};

// Bytes of a run's tensors, little-endian.
struct NamedBytes {
  std::string name;
  absl::string_view bytes;
};

struct RunTensors {
  TensorType type = TensorType::kF32;  // of all
  absl::string_view parameters;        // as the layout orders them
  absl::string_view buffers;
  std::vector<NamedBytes> slots;  // each as large as the parameters; as OptimizerSlots
};

// What an evaluation is of.
enum class Evaluated {
  kCurrent,  // the run's parameters
  kAverage,  // their exponential moving average, where training.ema is above 0
};

// Computes one run. Not thread-safe. Errors: RESOURCE_EXHAUSTED (memory ran out; the call has
// changed nothing), UNAVAILABLE (the device is lost to this process), INTERNAL.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendIdentity& identity() const = 0;

  virtual absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) = 0;

  // Adds the next of the run's held-out batches, of which sums->batches are added; the same ones at
  // every evaluation.
  virtual absl::Status Evaluate(Evaluated what, const TokenBatch& batch, EvaluationSums* sums) = 0;

  // What the run's evaluation.record asks for, of a held-out batch. Changes nothing of the run.
  virtual absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) = 0;

  // Valid until the next call of any function.
  virtual absl::StatusOr<RunTensors> Tensors() = 0;
  // Of the run's type and sizes, slots in their order.
  virtual absl::Status SetTensors(const RunTensors& tensors) = 0;
};

// Makes the backend of a run, with its initial parameters.
using BackendFactory = absl::StatusOr<std::unique_ptr<Backend>>(const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_BACKEND_H_
