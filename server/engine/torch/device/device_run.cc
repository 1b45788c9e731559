#include "server/engine/torch/device/device_run.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <variant>

#include "absl/time/clock.h"
#include "server/engine/core/layout.h"
#include "server/engine/torch/train/boundary.h"

namespace ablate::engine {
namespace {

// A block should take about this long: much longer than waiting for its end, and short enough for
// the caller's reports.
constexpr absl::Duration kShortBlock = absl::Milliseconds(8), kLongBlock = absl::Milliseconds(40);
constexpr size_t kMostSlots = 256;
constexpr int64_t kMostBlockBytes = 16 << 20;

// The numbers of an update in front of its packed batch: step; learning rate and the schedule's
// factor, as the bits of a float64.
constexpr int64_t kHeader = 3;

// Returns how many slots of `words` numbers a block may have.
size_t SlotsFor(int64_t words) {
  const int64_t fitting = kMostBlockBytes / (words * static_cast<int64_t>(sizeof(int64_t)));
  return std::clamp<size_t>(static_cast<size_t>(fitting), 1, kMostSlots);
}

// Returns the number of evaluation batches in a block. It depends on the config alone, because it
// decides which batches are scored together, and so the bits of their sums.
size_t EvaluationsOf(const RunConfig& config) {
  return SlotsFor(BatchSource::kMaxEvaluationBatch * (2 * int64_t{config.model.context} + 1));
}

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

}  // namespace

bool DeviceSlots::Reserve(size_t least, int64_t words) {
  const auto slots_wanted = static_cast<int64_t>(least);
  if (host_.defined() && host_.size(0) >= slots_wanted && host_.size(1) >= words) return false;
  if (host_.defined()) words = std::max(words, host_.size(1));
  // The largest block at once: what has moved costs new graphs.
  const auto slots = static_cast<int64_t>(std::max(least, SlotsFor(words)));
  const auto on_device = [&](at::ScalarType type) {
    return at::TensorOptions(stream_.device()).dtype(type);
  };
  // Changes nothing if one of them fails.
  at::Tensor host = stream_.HostTensor({slots, words}, at::kLong);
  at::Tensor host_results = stream_.HostTensor({slots, results_}, at::kDouble);
  at::Tensor device = at::zeros({slots, words}, on_device(at::kLong));
  at::Tensor device_results = at::zeros({slots, results_}, on_device(at::kDouble));
  at::Tensor numbers = at::arange(slots, on_device(at::kLong)).unsqueeze(1);
  at::Tensor slot = at::zeros({1}, on_device(at::kLong));
  host_ = std::move(host), host_results_ = std::move(host_results);
  device_ = std::move(device), device_results_ = std::move(device_results);
  numbers_ = std::move(numbers), slot_ = std::move(slot);
  return true;
}

int64_t* DeviceSlots::Words(size_t slot) {
  return host_.mutable_data_ptr<int64_t>() + static_cast<int64_t>(slot) * host_.size(1);
}

const double* DeviceSlots::Results(size_t slot) const {
  return host_results_.const_data_ptr<double>() + static_cast<int64_t>(slot) * results_;
}

void DeviceSlots::Send(size_t slots) {
  const auto count = static_cast<int64_t>(slots);
  device_.narrow(0, 0, count).copy_(host_.narrow(0, 0, count), /*non_blocking=*/true);
  slot_.zero_();
}

void DeviceSlots::Fetch(size_t slots) {
  const auto count = static_cast<int64_t>(slots);
  host_results_.narrow(0, 0, count)
      .copy_(device_results_.narrow(0, 0, count), /*non_blocking=*/true);
  stream_.Synchronize();
}

at::Tensor DeviceSlots::Read(int64_t words) const {
  return device_.narrow(1, 0, words).index_select(0, slot_).squeeze(0);
}

void DeviceSlots::Write(const at::Tensor& results) {
  // An indexed copy would sort its indices, because deterministic algorithms are on.
  at::where_out(device_results_, numbers_.eq(slot_), results, device_results_);
  slot_.add_(1);
}

DeviceRun::DeviceRun(const RunConfig& config, std::unique_ptr<DeviceStream> stream)
    : stream_(std::move(stream)),
      packing_(config),
      update_slots_(*stream_, 3),
      score_slots_(*stream_, 3),
      evaluations_(EvaluationsOf(config)) {
  // Drawn without the lock, because it takes the host seconds for a large model.
  const InitialValues start = DrawInitialValues(config);
  stream_->Run([&] {
    run_.emplace(config, start, stream_->device());
    frozen_ = at::zeros({}, at::TensorOptions(stream_->device()).dtype(at::kBool));
  });
}

DeviceRun::~DeviceRun() {
  try {
    stream_->Run([&] { stream_->Synchronize(); });
    DropGraphs();
  } catch (const c10::Error&) {
    // The device is lost; the earlier error reports that.
  }
}

void DeviceRun::Restart(const RunConfig& config) {
  const InitialValues start = DrawInitialValues(config);
  stream_->Run([&] { run_->Restart(start); });
}

std::vector<PackedShape> DeviceRun::PrepareUpdates(absl::Span<const UpdateRequest> updates) {
  std::vector<PackedShape> shapes;
  int64_t words = 0;
  for (const UpdateRequest& update : updates) {
    if (!CanStandardise(run_->config(), update.batch)) break;  // a graph can't check it
    TORCH_CHECK(update.batch.rows % run_->config().training.accumulation == 0,
                "a batch can't be cut into equal micro-batches");
    shapes.push_back(packing_.UpdateShape(update.batch));
    words = std::max(words, kHeader + packing_.MostUpdateWords(shapes.back()));
  }
  TORCH_CHECK(!shapes.empty(), kOnePosition);
  if (Reserve(update_slots_, shapes.size(), words) && !update_graphs_.empty()) DropGraphs();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const PackedShape shape = shapes[i];
    if (update_graphs_.contains(shape)) continue;
    PackUpdate(updates[i], shape, 0);
    update_graphs_[shape] = Captured(update_slots_, [this, shape] { UpdateOnce(shape); });
  }
  return shapes;
}

void DeviceRun::MakeUpdates(absl::Span<const UpdateRequest> updates,
                            absl::Span<const PackedShape> shapes,
                            std::vector<UpdateResult>* results) {
  const size_t count = shapes.size();
  for (size_t i = 0; i < count; ++i) PackUpdate(updates[i], shapes[i], i);
  absl::Duration elapsed;
  stream_->Run([&] {
    const absl::Time begin = absl::Now();
    update_slots_.Send(count);
    frozen_.zero_();
    for (const PackedShape& shape : shapes) {
      update_graphs_.at(shape)->Replay();
      in_block_ = true;
    }
    update_slots_.Fetch(count);
    in_block_ = false;
    elapsed = absl::Now() - begin;
  });
  Adapt(count, elapsed);
  for (size_t i = 0; i < count; ++i) {
    const double* const result = update_slots_.Results(i);
    results->push_back({result[0], result[1], result[2] != 0});
    if (!results->back().made) break;
  }
}

void DeviceRun::PackUpdate(const UpdateRequest& update, const PackedShape& shape, size_t slot) {
  int64_t* const words = update_slots_.Words(slot);
  words[0] = update.step;
  words[1] = std::bit_cast<int64_t>(update.learning_rate);
  words[2] = std::bit_cast<int64_t>(update.factor);
  PackBatches({&update.batch, 1}, shape, words + kHeader);
}

// Grows blocks that are short, and shrinks long ones.
void DeviceRun::Adapt(size_t updates, absl::Duration elapsed) {
  if (updates == updates_ && elapsed < kShortBlock) {
    updates_ = std::min(2 * updates_, update_slots_.count());
  }
  if (elapsed > kLongBlock) updates_ = std::max<size_t>(updates_ / 2, 1);
}

// The work of one update's graph.
void DeviceRun::UpdateOnce(const PackedShape& shape) {
  const RunConfig& config = run_->config();
  FlatParameters& parameters = run_->parameters();
  const at::Tensor words = update_slots_.Read(kHeader + shape.words());
  const at::Tensor step = words.narrow(0, 0, 1);  // [1]
  const auto type = stream_->device().is_cpu() ? at::kDouble : at::kFloat;
  const at::Tensor rates = words.narrow(0, 1, 2).view(at::kDouble).to(type);
  const Dropout dropout = {config.model.dropout, config.seed, 0, 0, step};
  const at::Tensor statistics = parameters.statistics();
  const at::Tensor before = statistics.defined() ? statistics.clone() : at::Tensor();
  const at::Tensor loss =
      Differentiate(config.model, TrainingPass(config, &dropout),
                    MicroBatches(words.narrow(0, kHeader, shape.words()), shape), parameters,
                    ObjectiveOf(config.training))
          .to(at::kDouble);
  const at::NoGradGuard no_grad;
  const at::Tensor norm = NormOnDevice(parameters.gradients());
  frozen_.logical_or_((loss + norm).isfinite().logical_not());
  if (config.training.clip > 0) {
    const at::Tensor scale = (config.training.clip / (norm + 1e-6)).clamp_max(1);
    parameters.gradients().mul_(scale.to(parameters.gradients().scalar_type()));
  }
  const UpdateNumbers numbers = {(step + 1).to(at::kFloat).squeeze(0), rates[0], rates[1], frozen_};
  run_->optimizer().Step(numbers, parameters.values(), parameters.gradients());
  if (before.defined()) statistics.copy_(at::where(frozen_, before, statistics));
  update_slots_.Write(at::stack({loss, norm, frozen_.logical_not().to(at::kDouble)}));
}

std::vector<BatchTensors> DeviceRun::MicroBatches(const at::Tensor& words,
                                                  const PackedShape& shape) const {
  const int64_t micro_batches = run_->config().training.accumulation;
  const int64_t rows = shape.rows / micro_batches;
  std::vector<BatchTensors> made;
  for (int64_t i = 0; i < micro_batches; ++i) {
    made.push_back(Unpacked(words, shape, i * rows, rows, run_->options()));
  }
  return made;
}

void DeviceRun::Evaluate(Evaluated what, absl::Span<const TokenBatch> batches,
                         EvaluationSums* sums) {
  const std::vector<Group> groups = GroupsOf(batches);
  int64_t words = 0;
  for (const Group& group : groups) {
    words = std::max(words, packing_.MostEvaluationWords(group.shape));
  }
  if (Reserve(score_slots_, groups.size(), words) && !score_graphs_.empty()) DropGraphs();
  for (const Group& group : groups) {
    if (!score_graphs_.contains({group.shape, what})) CaptureScore(what, group);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    PackBatches(groups[i].batches, groups[i].shape, score_slots_.Words(i));
  }
  stream_->Run([&] {
    score_slots_.Send(groups.size());
    for (const Group& group : groups) score_graphs_[{group.shape, what}]->Replay();
    score_slots_.Fetch(groups.size());
  });
  for (size_t i = 0; i < groups.size(); ++i) {
    const double* const score = score_slots_.Results(i);
    sums->Add(groups[i].batches.size(), score[0], score[1], score[2]);
  }
}

// Puts as many batches into a group as the run's packing allows.
std::vector<DeviceRun::Group> DeviceRun::GroupsOf(absl::Span<const TokenBatch> batches) const {
  std::vector<Group> groups;
  while (!batches.empty()) {
    size_t count = 1;
    while (count < batches.size() && packing_.Fit(batches.first(count + 1))) ++count;
    groups.push_back({batches.first(count), packing_.EvaluationShape(batches.first(count))});
    batches.remove_prefix(count);
  }
  return groups;
}

void DeviceRun::CaptureScore(Evaluated what, const Group& group) {
  const PackedShape shape = group.shape;
  PackBatches(group.batches, shape, score_slots_.Words(0));
  score_graphs_[{shape, what}] = Captured(score_slots_, [this, shape, what] {
    const at::Tensor words = score_slots_.Read(shape.words());
    score_slots_.Write(run_->Score(what, Unpacked(words, shape, 0, shape.rows, run_->options())));
  });
}

// Makes room in `slots`. Returns true if their memory has moved.
bool DeviceRun::Reserve(DeviceSlots& slots, size_t count, int64_t words) {
  bool moved = false;
  stream_->Run([&] {
    moved = slots.Reserve(count, words);
    if (moved) stream_->Synchronize();
  });
  return moved;
}

// Drops all graphs of the stream, because they share workspaces.
void DeviceRun::DropGraphs() {
  update_graphs_.clear();
  score_graphs_.clear();
}

// Returns the graph of `work`, after two passes over the first slot, which must be packed. They
// change nothing but results.
std::unique_ptr<DeviceGraph> DeviceRun::Captured(DeviceSlots& slots,
                                                 const std::function<void()>& work) {
  constexpr int kWarmUps = 2;
  at::Tensor statistics, before;
  try {
    stream_->Run([&] {
      statistics = run_->parameters().statistics();
      if (statistics.defined()) before = statistics.clone();
      for (int i = 0; i < kWarmUps; ++i) {
        slots.Send(1);
        frozen_.fill_(true);
        work();
      }
      stream_->Synchronize();
    });
    return stream_->Capture(run_->config().precision == Precision::kTf32, work);
  } catch (...) {
    if (!IsOutOfMemory()) throw;
    // A pass that failed halfway has moved the running statistics; a failed capture has freed
    // workspaces of the other graphs.
    stream_->Run([&] {
      if (before.defined()) statistics.copy_(before);
      stream_->Synchronize();
    });
    DropGraphs();
    throw;
  }
}

std::vector<RecordedValue> DeviceRun::RecordGradients(const TokenBatch& batch) {
  std::vector<RecordedValue> recorded;
  stream_->Run([&] { recorded = run_->RecordGradients(batch); });
  return recorded;
}

RunTensors DeviceRun::Tensors() {
  RunTensors tensors;
  stream_->Run([&] { tensors = run_->Tensors(); });
  return tensors;
}

void DeviceRun::SetTensors(const RunTensors& tensors) {
  stream_->Run([&] { run_->SetTensors(tensors); });
}

RunConfig GraphKey(RunConfig config) {
  // The shapes of batches choose among a run's graphs.
  std::visit([](auto& task) { task = {}; }, config.task);
  config.model.init = {};
  config.training.steps = 0;
  config.training.optimizer.learning_rate = 0;
  config.training.schedule = {};
  config.training.checkpoints.clear();
  config.training.final_checkpoint = false;
  config.evaluation.every = config.evaluation.batches = 0;
  if (config.model.dropout == 0) config.seed = 0;
  return config;
}

}  // namespace ablate::engine
