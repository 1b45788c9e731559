// Implements DeviceStream on the CPU: a graph is its work, done again.
#ifndef ABLATE_TESTS_ENGINE_HOST_STREAM_H_
#define ABLATE_TESTS_ENGINE_HOST_STREAM_H_

#include <functional>
#include <memory>
#include <utility>

#include "server/engine/torch/device/device_stream.h"

namespace ablate::engine {

// Counts the work of a device.
struct HostStreamLog {
  int captures = 0;
  int replays = 0;
  int waits = 0;
  int releases = 0;      // of memory
  int failing_work = 0;  // the next captures that run out of memory
  // Their error is that of CUDA's own calls, not of LibTorch's allocator.
  bool fails_in_cuda = false;
  int failing_replay = 0;  // this replay from now on runs out of memory; 0: none
  DeviceMemory memory;

  [[noreturn]] void FailForMemory() const {
    const c10::SourceLocation here{"", "", 0};
    if (fails_in_cuda) throw c10::AcceleratorError(here, 2, "CUDA error: out of memory");
    throw c10::OutOfMemoryError(here, "no memory for a graph");
  }
};

class HostStream : public DeviceStream {
 public:
  explicit HostStream(HostStreamLog* log = nullptr) : log_(log == nullptr ? &own_ : log) {}

  at::Device device() const override { return at::kCPU; }
  void Run(absl::FunctionRef<void()> work) override { work(); }
  std::unique_ptr<DeviceGraph> Capture(bool /*tf32*/, std::function<void()> work) override {
    if (log_->failing_work > 0) {
      --log_->failing_work;
      log_->FailForMemory();
    }
    ++log_->captures;
    return std::make_unique<Graph>(std::move(work), log_);
  }
  void Synchronize() override { ++log_->waits; }
  at::Tensor HostTensor(at::IntArrayRef sizes, at::ScalarType type) override {
    return at::zeros(sizes, type);
  }

 private:
  class Graph : public DeviceGraph {
   public:
    Graph(std::function<void()> work, HostStreamLog* log) : work_(std::move(work)), log_(log) {}
    void Replay() override {
      ++log_->replays;
      if (log_->failing_replay > 0 && --log_->failing_replay == 0) log_->FailForMemory();
      work_();
    }

   private:
    const std::function<void()> work_;
    HostStreamLog* const log_;
  };

  HostStreamLog own_;
  HostStreamLog* const log_;
};

class HostStreams : public StreamSource {
 public:
  explicit HostStreams(HostStreamLog* log = nullptr) : log_(log) {}

  AcceleratorInfo info() const override { return {"", "host", "", 0}; }
  DeviceMemory Memory() override { return log_ == nullptr ? DeviceMemory() : log_->memory; }
  std::unique_ptr<DeviceStream> NewStream() override { return std::make_unique<HostStream>(log_); }
  void ReleaseMemory() override {
    if (log_ != nullptr) ++log_->releases;
  }

 private:
  HostStreamLog* const log_;
};

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_HOST_STREAM_H_
