#include "server/engine/torch/device/device_backend.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "server/engine/names.h"
#include "server/engine/torch/train/boundary.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

class DeviceBackend : public Backend {
 public:
  DeviceBackend(const RunConfig& config, std::string environment, StreamSource& source,
                EndedRuns& ended)
      : identity_{std::string(NameOf(TrainerKind::kTorch)), std::move(environment), "torch_version",
                  TorchVersion()},
        key_(GraphKey(config)),
        source_(source),
        ended_(ended),
        run_(ended.Take(key_)) {
    if (run_ != nullptr) {
      run_->Restart(config);
    } else {
      WithMemory([&] { run_ = std::make_unique<DeviceRun>(config, source.NewStream()); });
    }
  }
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  ~DeviceBackend() override {
    if (usable_) ended_.Put(key_, std::move(run_));
  }

  const BackendIdentity& identity() const override { return identity_; }

  BlockSizes blocks() const override { return run_->blocks(); }

  absl::StatusOr<UpdateResult> Step(const UpdateRequest& update) override {
    std::vector<UpdateResult> results;
    RETURN_IF_ERROR(StepBlock({&update, 1}, &results));
    return results.front();
  }

  absl::Status StepBlock(absl::Span<const UpdateRequest> updates,
                         std::vector<UpdateResult>* results) override {
    return OnDevice([&] {
      std::vector<PackedShape> shapes;
      WithMemory([&] { shapes = run_->PrepareUpdates(updates); });
      run_->MakeUpdates(updates, shapes, results);
      return absl::OkStatus();
    });
  }

  absl::Status Evaluate(Evaluated what, absl::Span<const TokenBatch> batches,
                        EvaluationSums* sums) override {
    return OnDevice([&] {
      WithMemory([&] { run_->Evaluate(what, batches, sums); });
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<RecordedValue>> RecordGradients(const TokenBatch& batch) override {
    return OnDevice([&]() -> absl::StatusOr<std::vector<RecordedValue>> {
      return run_->RecordGradients(batch);
    });
  }

  absl::StatusOr<RunTensors> Tensors() override {
    if (run_->has_lost_state()) {
      return absl::ResourceExhaustedError("out of memory between updates: the state is lost");
    }
    return OnDevice([&]() -> absl::StatusOr<RunTensors> { return run_->Tensors(); });
  }

  absl::Status SetTensors(const RunTensors& tensors) override {
    return OnDevice([&] {
      run_->SetTensors(tensors);
      return absl::OkStatus();
    });
  }

 private:
  // Returns the result of `work`, or the Status of its exception.
  template <typename Work>
  auto OnDevice(const Work& work) -> decltype(work()) {
    auto result = AtBoundary(work);
    if (!result.ok()) usable_ = false;
    return result;
  }

  // Calls `work`, which changes nothing if it runs out of memory. It is called again then, with the
  // memory of ended runs and LibTorch's cache.
  template <typename Work>
  void WithMemory(const Work& work) {
    try {
      work();
      return;
    } catch (...) {
      if (!IsOutOfMemory()) throw;
    }
    ended_.Clear();
    source_.ReleaseMemory();
    work();
  }

  const BackendIdentity identity_;
  const RunConfig key_;
  StreamSource& source_;
  EndedRuns& ended_;
  std::unique_ptr<DeviceRun> run_;
  bool usable_ = true;  // false after an error: another run must not take it over
};

}  // namespace

std::unique_ptr<DeviceRun> EndedRuns::Take(const RunConfig& key) {
  MutexLock lock(&mutex_);
  const auto found =
      std::find_if(runs_.begin(), runs_.end(), [&](const Ended& one) { return one.key == key; });
  if (found == runs_.end()) return nullptr;
  std::unique_ptr<DeviceRun> run = std::move(found->run);
  runs_.erase(found);
  return run;
}

void EndedRuns::Put(RunConfig key, std::unique_ptr<DeviceRun> run) {
  constexpr int64_t kLargest = 4 << 20;  // parameters; a step of a larger model hides a capture
  std::vector<Ended> dropped;            // destroyed after the lock is released
  MutexLock lock(&mutex_);
  if (run->size() > kLargest) {
    dropped.push_back({{}, std::move(run)});
    return;
  }
  runs_.push_back({std::move(key), std::move(run)});
  if (runs_.size() > kMostDeviceLanes) {
    dropped.push_back(std::move(runs_.front()));
    runs_.erase(runs_.begin());
  }
}

void EndedRuns::Clear() {
  std::vector<Ended> dropped;
  MutexLock lock(&mutex_);
  dropped.swap(runs_);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend(const RunConfig& run,
                                                           std::string environment,
                                                           StreamSource& source, EndedRuns& ended) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    return std::make_unique<DeviceBackend>(run, std::move(environment), source, ended);
  });
}

}  // namespace ablate::engine
