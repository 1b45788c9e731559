// Trains one run on a device: the captured graphs of its updates and evaluations, and the memory
// that host and device share.
#ifndef ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_RUN_H_
#define ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_RUN_H_

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/torch/device/device_stream.h"
#include "server/engine/torch/device/packed_batch.h"
#include "server/engine/torch/train/torch_run.h"

namespace ablate::engine {

// The memory that the host and a graph share: one slot for each batch of a block. A graph reads the
// slot whose number is in `slot_` and then adds 1 to it, so that one graph serves all slots.
class DeviceSlots {
 public:
  // `results` numbers per slot.
  DeviceSlots(DeviceStream& stream, int64_t results) : stream_(stream), results_(results) {}

  // Makes room for at least `least` slots of `words` numbers. Returns true if the memory has moved;
  // graphs that use it must be dropped then.
  bool Reserve(size_t least, int64_t words);

  size_t count() const { return static_cast<size_t>(host_.size(0)); }
  int64_t* Words(size_t slot);
  const double* Results(size_t slot) const;

  // Sends `slots` slots to the device; the next graph reads the first.
  void Send(size_t slots);
  // Fetches their results, and waits.
  void Fetch(size_t slots);

  // Within a graph: returns the first `words` numbers of the current slot, [words] int64.
  at::Tensor Read(int64_t words) const;
  // Within a graph: stores the current slot's results [results], and goes on to the next slot.
  void Write(const at::Tensor& results);

 private:
  DeviceStream& stream_;
  const int64_t results_;
  at::Tensor host_, device_;                  // [slots, words], int64
  at::Tensor host_results_, device_results_;  // [slots, results], float64
  at::Tensor numbers_;                        // [slots, 1], int64: 0, 1, …
  at::Tensor slot_;                           // [1], int64
};

// A run whose functions throw c10::Error. Not thread-safe. An error of memory (IsOutOfMemory) from
// the constructor, a Prepare function or Evaluate has changed nothing; any other exception makes
// the run unusable.
class DeviceRun {
 public:
  DeviceRun(const RunConfig& config, std::unique_ptr<DeviceStream> stream);
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  ~DeviceRun();

  // Starts another run, whose GraphKey must be equal. Its graphs serve that run, too.
  void Restart(const RunConfig& config);

  BlockSizes blocks() const { return {updates_, evaluations_}; }

  // Captures the graphs that these updates need. Returns the shapes of those that can be made in
  // one block: the updates before the first that must fail, at least one.
  std::vector<PackedShape> PrepareUpdates(absl::Span<const UpdateRequest> updates);
  // As Backend::StepBlock, for as many updates as PrepareUpdates has returned shapes.
  void MakeUpdates(absl::Span<const UpdateRequest> updates, absl::Span<const PackedShape> shapes,
                   std::vector<UpdateResult>* results);
  // Returns true after a MakeUpdates that has thrown when it had made some of its updates.
  bool has_lost_state() const { return in_block_; }

  // As the functions of Backend.
  void Evaluate(Evaluated what, absl::Span<const TokenBatch> batches, EvaluationSums* sums);
  std::vector<RecordedValue> RecordGradients(const TokenBatch& batch);
  RunTensors Tensors();
  void SetTensors(const RunTensors& tensors);

  // Returns the number of parameters.
  int64_t size() { return run_->parameters().values().numel(); }

 private:
  // Consecutive evaluation batches that are scored together.
  struct Group {
    absl::Span<const TokenBatch> batches;
    PackedShape shape;
  };

  void PackUpdate(const UpdateRequest& update, const PackedShape& shape, size_t slot);
  void Adapt(size_t updates, absl::Duration elapsed);
  void UpdateOnce(const PackedShape& shape);
  std::vector<BatchTensors> MicroBatches(const at::Tensor& words, const PackedShape& shape) const;
  std::vector<Group> GroupsOf(absl::Span<const TokenBatch> batches) const;
  void CaptureScore(Evaluated what, const Group& group);
  bool Reserve(DeviceSlots& slots, size_t count, int64_t words);
  void DropGraphs();
  std::unique_ptr<DeviceGraph> Captured(DeviceSlots& slots, const std::function<void()>& work);

  const std::unique_ptr<DeviceStream> stream_;
  const Packing packing_;
  std::optional<TorchRun> run_;  // set by the constructor, on the stream
  DeviceSlots update_slots_;
  DeviceSlots score_slots_;
  at::Tensor frozen_;      // [], bool: true after an update that wasn't made
  bool in_block_ = false;  // a block's first update was launched, and its results weren't fetched
  size_t updates_ = 1;
  const size_t evaluations_;
  std::map<PackedShape, std::unique_ptr<DeviceGraph>> update_graphs_;
  std::map<std::pair<PackedShape, Evaluated>, std::unique_ptr<DeviceGraph>> score_graphs_;
};

// Returns what the graphs of a run depend on: its config without the task's data, the initial
// values, the schedule, and the times of evaluations and checkpoints. The learning rate reaches the
// device as a number; so does the seed, unless there is dropout.
RunConfig GraphKey(RunConfig config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_RUN_H_
