#include "server/engine/torch/train/torch_backend.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/names.h"
#include "server/engine/torch/train/boundary.h"
#include "server/engine/torch/train/optimizer.h"
#include "server/engine/torch/train/torch_run.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

// LibTorch's reduction adds float32 squares one by one. With 42 million parameters its norm is 0.4
// % too small, and it is infinite if one square is.
template <typename Number>
double SquaredNorm(const Number* values, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<double, kLanes> sums{};
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[at + lane];
      sums[lane] += value * value;
    }
  }
  for (int64_t lane = 0; at < count; ++at, ++lane) {
    const double value = values[at];
    sums[lane] += value * value;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

// Lets several threads sum a part each time, and adds the parts in order.
template <typename Number>
double SquaredNormByThreads(const Number* values, int64_t count) {
  if (at::get_num_threads() == 1) return SquaredNorm(values, count);
  constexpr int64_t kPart = int64_t{1} << 20;
  std::vector<double> parts(static_cast<size_t>((count + kPart - 1) / kPart));
  at::parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      parts[static_cast<size_t>(part)] =
          SquaredNorm(values + part * kPart, std::min(kPart, count - part * kPart));
    }
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// Restores running statistics unless Keep is called, because the forward pass changes them before
// it is known whether there is an update.
class StatisticsGuard {
 public:
  explicit StatisticsGuard(const FlatParameters& parameters)
      : statistics_(parameters.statistics()) {
    if (statistics_.defined()) before_ = statistics_.clone();
  }
  StatisticsGuard(const StatisticsGuard&) = delete;
  StatisticsGuard& operator=(const StatisticsGuard&) = delete;
  ~StatisticsGuard() {
    if (!before_.defined()) return;
    const at::NoGradGuard no_grad;
    statistics_.copy_(before_);
  }

  void Keep() { before_ = at::Tensor(); }

 private:
  at::Tensor statistics_;
  at::Tensor before_;
};

// Lets so many threads share the operations of the calling one from now on. Each change drops
// oneDNN's compiled kernels, so that the number stays until the lane's next run.
void UseThreads(uint32_t threads) {
  const int count = static_cast<int>(threads);
  if (at::get_num_threads() != count) at::set_num_threads(count);
}

class TorchBackend : public Backend {
 public:
  explicit TorchBackend(const RunConfig& config) : run_(config, DrawInitialValues(config)) {}

  const BackendIdentity& identity() const override { return identity_; }

  absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) override {
    UseThreads(run_.config().training.threads);
    return AtBoundary([&]() -> absl::StatusOr<UpdateResult> { return Update(update); });
  }

  absl::Status Evaluate(Evaluated what, absl::Span<const TokenBatch> batches,
                        EvaluationSums* sums) override {
    UseThreads(run_.config().training.threads);
    return AtBoundary([&] {
      for (const TokenBatch& batch : batches) {
        const at::Tensor score = run_.Score(what, TensorsOf(batch, run_.options()));
        const double* const sum = score.const_data_ptr<double>();
        sums->Add(1, sum[0], sum[1], sum[2]);
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) override {
    UseThreads(run_.config().training.threads);
    return AtBoundary([&]() -> absl::StatusOr<std::vector<RecordedValue>> {
      return run_.RecordGradients(batch);
    });
  }

  absl::StatusOr<RunTensors> Tensors() override {
    return AtBoundary([&]() -> absl::StatusOr<RunTensors> { return run_.Tensors(); });
  }

  absl::Status SetTensors(const RunTensors& tensors) override {
    return AtBoundary([&] {
      run_.SetTensors(tensors);
      return absl::OkStatus();
    });
  }

 private:
  UpdateResult Update(const UpdateRequest& update) {
    const RunConfig& config = run_.config();
    const TrainingConfig& training = config.training;
    FlatParameters& parameters = run_.parameters();
    const Dropout dropout = {config.model.dropout, config.seed, update.step, 0};
    StatisticsGuard statistics(parameters);
    UpdateResult result;
    result.loss =
        Differentiate(config.model, TrainingPass(config, &dropout),
                      MakeMicroBatches(update.batch, training.accumulation, run_.options()),
                      parameters, ObjectiveOf(training))
            .item<double>();
    result.gradient_norm = GradientNorm(parameters.gradients());
    // A gradient that isn't finite would spoil every parameter; it ends the run, as such a loss
    // does.
    result.made = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
    if (!result.made) return result;
    if (training.clip > 0) {
      ClipGradient(parameters.gradients(), result.gradient_norm, training.clip);
    }
    run_.optimizer().Step(NumbersOf(update), parameters.values(), parameters.gradients());
    statistics.Keep();  // nothing can fail any more
    return result;
  }

  const BackendIdentity identity_ = {std::string(NameOf(TrainerKind::kTorch)),
                                     Environment(TrainerKind::kTorch), "torch_version",
                                     TorchVersion()};
  TorchRun run_;
};

}  // namespace

double GradientNorm(const at::Tensor& gradient) {
  return std::sqrt(gradient.scalar_type() == at::kDouble
                       ? SquaredNormByThreads(gradient.const_data_ptr<double>(), gradient.numel())
                       : SquaredNormByThreads(gradient.const_data_ptr<float>(), gradient.numel()));
}

absl::StatusOr<std::unique_ptr<Backend>> MakeTorchBackend(const RunConfig& config) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    UseThreads(config.training.threads);
    return std::make_unique<TorchBackend>(config);
  });
}

}  // namespace ablate::engine
