#include "server/engine/device/device_backend.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/engine/device/packed_batch.h"
#include "server/engine/layout.h"
#include "server/engine/names.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/torch_run.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

// A block should take about this long: much longer than waiting for its end, and short enough for
// the caller's reports.
constexpr absl::Duration kShortBlock = absl::Milliseconds(8), kLongBlock = absl::Milliseconds(40);
constexpr size_t kMostSlots = 256;
constexpr int64_t kMostBlockBytes = 16 << 20;

// Returns the norm of a gradient [P], [] float64. Adds up to 2,048 squares in the gradient's type
// and their sums in float64, because a float64 copy of the gradient would be as large as both of
// Adam's moments. Infinite in float32 if an element is above 10¹⁹, where no run goes on.
at::Tensor NormOnDevice(const at::Tensor& gradient) {
  constexpr int64_t kRow = 2048;
  const int64_t rows = gradient.numel() / kRow, rest = gradient.numel() % kRow;
  std::vector<at::Tensor> norms;
  if (rows > 0) {
    norms.push_back(at::linalg_vector_norm(gradient.narrow(0, 0, rows * kRow).view({rows, kRow}), 2,
                                           at::IntArrayRef{1}));
  }
  if (rest > 0) {
    norms.push_back(at::linalg_vector_norm(gradient.narrow(0, rows * kRow, rest), 2).view({1}));
  }
  return at::linalg_vector_norm(at::cat(norms).to(at::kDouble), 2);
}

// The memory that the host and a graph share: one slot for each batch of a block. A graph reads the
// slot whose number is in `slot` and then adds 1 to it, so that one graph serves all slots.
class Slots {
 public:
  // `results` numbers per slot.
  Slots(DeviceStream& stream, int64_t results) : stream_(stream), results_(results) {}

  // Makes room for `slots` slots of `words` numbers. Returns true if the memory has moved; graphs
  // that use it must be dropped then.
  bool Reserve(int64_t slots, int64_t words) {
    if (host_.defined() && host_.size(0) >= slots && host_.size(1) >= words) return false;
    if (host_.defined()) {
      slots = std::max(slots, host_.size(0));
      words = std::max(words, host_.size(1));
    }
    const auto on_device = [&](at::ScalarType type) {
      return at::TensorOptions(stream_.device()).dtype(type);
    };
    host_ = stream_.HostTensor({slots, words}, at::kLong);
    device_ = at::zeros({slots, words}, on_device(at::kLong));
    host_results_ = stream_.HostTensor({slots, results_}, at::kDouble);
    device_results_ = at::zeros({slots, results_}, on_device(at::kDouble));
    numbers_ = at::arange(slots, on_device(at::kLong)).unsqueeze(1);
    slot_ = at::zeros({1}, on_device(at::kLong));
    return true;
  }

  int64_t* Words(size_t slot) {
    return host_.mutable_data_ptr<int64_t>() + static_cast<int64_t>(slot) * host_.size(1);
  }
  const double* Results(size_t slot) const {
    return host_results_.const_data_ptr<double>() + static_cast<int64_t>(slot) * results_;
  }

  // Sends `slots` slots to the device; the next graph reads the first.
  void Send(size_t slots) {
    const auto count = static_cast<int64_t>(slots);
    device_.narrow(0, 0, count).copy_(host_.narrow(0, 0, count), /*non_blocking=*/true);
    slot_.zero_();
  }
  // Fetches their results, and waits.
  void Fetch(size_t slots) {
    const auto count = static_cast<int64_t>(slots);
    host_results_.narrow(0, 0, count)
        .copy_(device_results_.narrow(0, 0, count), /*non_blocking=*/true);
    stream_.Synchronize();
  }

  // Within a graph: returns the first `words` numbers of the current slot, [words] int64.
  at::Tensor Read(int64_t words) const {
    return device_.narrow(1, 0, words).index_select(0, slot_).squeeze(0);
  }
  // Within a graph: stores the current slot's results [results], and goes on to the next slot.
  void Write(const at::Tensor& results) {
    // An indexed copy would sort its indices, because deterministic algorithms are on.
    at::where_out(device_results_, numbers_.eq(slot_), results, device_results_);
    slot_.add_(1);
  }

 private:
  DeviceStream& stream_;
  const int64_t results_;
  at::Tensor host_, device_;                  // [slots, words], int64
  at::Tensor host_results_, device_results_;  // [slots, results], float64
  at::Tensor numbers_;                        // [slots, 1], int64: 0, 1, …
  at::Tensor slot_;                           // [1], int64
};

// Returns rows first…first + count − 1 of a packed batch as tensors; `options` are the model's.
BatchTensors Unpacked(const at::Tensor& words, const PackedShape& shape, int64_t first,
                      int64_t count, at::TensorOptions options) {
  const auto part = [&](int64_t begin, int64_t width) {
    return words.narrow(0, begin + first * width, count * width);
  };
  BatchTensors batch;
  batch.rows = count;
  batch.length = shape.length;
  batch.real_positions = count * shape.length;  // the host has checked it
  batch.tokens = part(0, shape.length);
  const at::Tensor targets = part(shape.rows * shape.length, shape.targets);
  batch.targets = shape.ignores ? targets.clamp_min(0) : targets;
  if (shape.ignores) batch.counted = targets.ne(TokenBatch::kIgnored).to(options);
  if (shape.padded) batch.lengths = part(shape.rows * (shape.length + shape.targets), 1);
  return batch;
}

// The numbers of an update in front of its packed batch, as bits of float64 and int64.
constexpr int64_t kHeader = 2;  // learning rate, step

class DeviceBackend : public Backend {
 public:
  DeviceBackend(const RunConfig& config, std::string environment,
                std::unique_ptr<DeviceStream> stream)
      : stream_(std::move(stream)),
        identity_{std::string(NameOf(TrainerKind::kTorch)), std::move(environment), "torch_version",
                  TorchVersion()},
        packing_(config),
        update_slots_(*stream_, 3),
        score_slots_(*stream_, 3) {
    stream_->Run([&] {
      run_.emplace(config);
      frozen_ = at::zeros({}, at::TensorOptions(stream_->device()).dtype(at::kBool));
    });
  }
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  ~DeviceBackend() override {
    try {
      stream_->Run([&] { stream_->Synchronize(); });
      DropGraphs();
    } catch (const c10::Error&) {
      // The device is lost; the earlier error reports that.
    }
  }

  const BackendIdentity& identity() const override { return identity_; }

  BlockSizes blocks() const override { return {updates_, evaluations_}; }

  absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) override {
    std::vector<UpdateResult> results;
    absl::Status made = StepBlock({&update, 1}, &results);
    if (!made.ok()) return made;
    return results.front();
  }

  absl::Status StepBlock(absl::Span<const UpdateRequest> updates,
                         std::vector<UpdateResult>* results) override {
    return AtBoundary([&] {
      MakeUpdates(updates, results);
      return absl::OkStatus();
    });
  }

  absl::Status Evaluate(Evaluated what, absl::Span<const TokenBatch> batches,
                        EvaluationSums* sums) override {
    return AtBoundary([&] {
      Score(what, batches, sums);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) override {
    return OnDevice<std::vector<RecordedValue>>([&] { return run_->RecordGradients(batch); });
  }

  absl::StatusOr<RunTensors> Tensors() override {
    return OnDevice<RunTensors>([&] { return run_->Tensors(); });
  }

  absl::Status SetTensors(const RunTensors& tensors) override {
    return AtBoundary([&] {
      stream_->Run([&] { run_->SetTensors(tensors); });
      return absl::OkStatus();
    });
  }

 private:
  template <typename Result, typename Work>
  absl::StatusOr<Result> OnDevice(const Work& work) {
    return AtBoundary([&]() -> absl::StatusOr<Result> {
      Result result;
      stream_->Run([&] { result = work(); });
      return result;
    });
  }

  void MakeUpdates(absl::Span<const UpdateRequest> updates, std::vector<UpdateResult>* results) {
    std::vector<PackedShape> shapes;
    int64_t words = 0;
    for (const UpdateRequest& update : updates) {
      CheckPositions(update.batch);
      shapes.push_back(packing_.UpdateShape(update.batch));
      words = std::max(words, kHeader + packing_.MostWords(shapes.back()));
    }
    if (Reserve(update_slots_, updates.size(), words) && !update_graphs_.empty()) DropGraphs();
    const auto pack = [&](size_t update, size_t slot) {
      int64_t* const to = update_slots_.Words(slot);
      to[0] = std::bit_cast<int64_t>(updates[update].learning_rate);
      to[1] = updates[update].step;
      PackBatch(updates[update].batch, shapes[update], to + kHeader);
    };
    for (size_t i = 0; i < updates.size(); ++i) {
      const PackedShape shape = shapes[i];
      if (update_graphs_.contains(shape)) continue;
      pack(i, 0);
      update_graphs_[shape] = Captured(update_slots_, [this, shape] { UpdateOnce(shape); });
    }
    for (size_t i = 0; i < updates.size(); ++i) pack(i, i);
    const absl::Time begin = absl::Now();
    stream_->Run([&] {
      update_slots_.Send(updates.size());
      frozen_.zero_();
      for (const PackedShape& shape : shapes) update_graphs_[shape]->Replay();
      update_slots_.Fetch(updates.size());
    });
    Adapt(updates.size(), words, absl::Now() - begin);
    for (size_t i = 0; i < updates.size(); ++i) {
      const double* const result = update_slots_.Results(i);
      results->push_back({result[0], result[1], result[2] != 0});
      if (!results->back().made) break;
    }
  }

  // Checks that every micro-batch has enough positions for BatchNorm; a graph can't.
  void CheckPositions(const TokenBatch& batch) const {
    const RunConfig& config = run_->config();
    const int64_t micro_batches = config.training.accumulation, rows = batch.rows / micro_batches;
    TORCH_CHECK(rows * micro_batches == batch.rows,
                "a batch can't be cut into equal micro-batches");
    if (config.model.norm.kind != NormKind::kBatch || !HasNorm(config.model.norm)) return;
    for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      const auto first = batch.lengths.begin() + micro_batch * rows;
      TORCH_CHECK(std::accumulate(first, first + rows, int64_t{0}) > 1, kOnePosition);
    }
  }

  // Grows blocks that are short, and shrinks long ones.
  void Adapt(size_t updates, int64_t words, absl::Duration elapsed) {
    const int64_t fitting = kMostBlockBytes / (words * static_cast<int64_t>(sizeof(int64_t)));
    const size_t most = std::clamp<size_t>(static_cast<size_t>(fitting), 1, kMostSlots);
    if (updates == updates_ && elapsed < kShortBlock) updates_ = std::min(2 * updates_, most);
    if (elapsed > kLongBlock) updates_ = std::max<size_t>(updates_ / 2, 1);
  }

  // The work of one update's graph.
  void UpdateOnce(const PackedShape& shape) {
    const RunConfig& config = run_->config();
    FlatParameters& parameters = run_->parameters();
    const at::Tensor words = update_slots_.Read(kHeader + shape.words());
    const at::Tensor learning_rate = words.narrow(0, 0, 1).view(at::kDouble).squeeze(0);  // []
    const at::Tensor step = words.narrow(0, 1, 1);                                        // [1]
    Dropout dropout = {config.model.dropout, config.seed, 0, 0, step};
    const at::Tensor statistics = StatisticsOf(parameters);
    const at::Tensor before = statistics.defined() ? statistics.clone() : at::Tensor();
    const at::Tensor loss =
        Differentiate(config.model, TrainingPass(config, &dropout),
                      MicroBatches(words.narrow(0, kHeader, shape.words()), shape), parameters,
                      config.training.label_smoothing)
            .to(at::kDouble);
    const at::NoGradGuard no_grad;
    const at::Tensor norm = NormOnDevice(parameters.gradients());
    frozen_.logical_or_((loss + norm).isfinite().logical_not());
    if (config.training.clip > 0) {
      const at::Tensor scale = (config.training.clip / (norm + 1e-6)).clamp_max(1);
      parameters.gradients().mul_(scale.to(parameters.gradients().scalar_type()));
    }
    const bool is_cpu = stream_->device().is_cpu();
    const UpdateNumbers numbers = {(step + 1).to(at::kFloat).squeeze(0),
                                   is_cpu ? learning_rate : learning_rate.to(at::kFloat), frozen_};
    run_->optimizer().Step(numbers, parameters.values(), parameters.gradients());
    if (before.defined()) statistics.copy_(at::where(frozen_, before, statistics));
    update_slots_.Write(at::stack({loss, norm, frozen_.logical_not().to(at::kDouble)}));
  }

  std::vector<BatchTensors> MicroBatches(const at::Tensor& words, const PackedShape& shape) const {
    const int64_t micro_batches = run_->config().training.accumulation;
    const int64_t rows = shape.rows / micro_batches;
    std::vector<BatchTensors> made;
    for (int64_t i = 0; i < micro_batches; ++i) {
      made.push_back(Unpacked(words, shape, i * rows, rows, run_->options()));
    }
    return made;
  }

  // Returns BatchNorm's running statistics; undefined if there are none.
  static at::Tensor StatisticsOf(const FlatParameters& parameters) {
    const int64_t size = parameters.layout().statistics_size;
    return size == 0 ? at::Tensor() : parameters.buffers().narrow(0, 0, size);
  }

  void Score(Evaluated what, absl::Span<const TokenBatch> batches, EvaluationSums* sums) {
    std::vector<PackedShape> shapes;
    int64_t words = 0;
    for (const TokenBatch& batch : batches) {
      shapes.push_back(packing_.EvaluationShape(batch));
      words = std::max(words, packing_.MostWords(shapes.back()));
    }
    if (Reserve(score_slots_, batches.size(), words) && !score_graphs_.empty()) DropGraphs();
    for (size_t i = 0; i < batches.size(); ++i) {
      const PackedShape shape = shapes[i];
      if (score_graphs_.contains({shape, what})) continue;
      PackBatch(batches[i], shape, score_slots_.Words(0));
      score_graphs_[{shape, what}] = Captured(score_slots_, [this, shape, what] {
        const at::Tensor read = score_slots_.Read(shape.words());
        score_slots_.Write(
            run_->Score(what, Unpacked(read, shape, 0, shape.rows, run_->options())));
      });
    }
    for (size_t i = 0; i < batches.size(); ++i) {
      PackBatch(batches[i], shapes[i], score_slots_.Words(i));
    }
    stream_->Run([&] {
      score_slots_.Send(batches.size());
      for (const PackedShape& shape : shapes) score_graphs_[{shape, what}]->Replay();
      score_slots_.Fetch(batches.size());
    });
    for (size_t i = 0; i < batches.size(); ++i) {
      const double* const score = score_slots_.Results(i);
      sums->Add(score[0], score[1], score[2]);
    }
    const int64_t fitting = kMostBlockBytes / (words * static_cast<int64_t>(sizeof(int64_t)));
    evaluations_ = std::clamp<size_t>(static_cast<size_t>(fitting), 1, kMostSlots);
  }

  // Makes room in `slots`. Returns true if their memory has moved.
  bool Reserve(Slots& slots, size_t count, int64_t words) {
    bool moved = false;
    stream_->Run([&] {
      // The largest block at once, unless it is large: what has moved costs new graphs.
      const int64_t fitting = kMostBlockBytes / (words * static_cast<int64_t>(sizeof(int64_t)));
      const auto least = static_cast<int64_t>(count);
      moved =
          slots.Reserve(std::clamp(fitting, least, std::max<int64_t>(least, kMostSlots)), words);
      if (moved) stream_->Synchronize();
    });
    return moved;
  }

  // Drops all graphs of the stream, because they share workspaces.
  void DropGraphs() {
    update_graphs_.clear();
    score_graphs_.clear();
  }

  // Returns the graph of `work`, after two passes over the first slot, which must be packed. They
  // change nothing but results.
  std::unique_ptr<DeviceGraph> Captured(Slots& slots, const std::function<void()>& work) {
    constexpr int kWarmUps = 2;
    stream_->Run([&] {
      for (int i = 0; i < kWarmUps; ++i) {
        slots.Send(1);
        frozen_.fill_(true);
        work();
      }
      stream_->Synchronize();
    });
    return stream_->Capture(run_->config().precision == Precision::kTf32, work);
  }

  const std::unique_ptr<DeviceStream> stream_;
  const BackendIdentity identity_;
  const Packing packing_;
  std::optional<TorchRun> run_;  // set by the constructor, on the stream
  Slots update_slots_;
  Slots score_slots_;
  at::Tensor frozen_;  // [], bool: true after an update that wasn't made
  size_t updates_ = 1;
  size_t evaluations_ = kMostSlots;
  std::map<PackedShape, std::unique_ptr<DeviceGraph>> update_graphs_;
  std::map<std::pair<PackedShape, Evaluated>, std::unique_ptr<DeviceGraph>> score_graphs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend(const RunConfig& run,
                                                           std::string environment,
                                                           std::unique_ptr<DeviceStream> stream) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    return std::make_unique<DeviceBackend>(run, std::move(environment), std::move(stream));
  });
}

}  // namespace ablate::engine
