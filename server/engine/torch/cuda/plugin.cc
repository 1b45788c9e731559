// The plugin for NVIDIA devices: streams and graphs of CUDA, by LibTorch. A library of its own, so
// that one worker program runs on machines with and without CUDA.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/AutogradState.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/torch/device/device_stream.h"

namespace ablate::engine {
namespace {

// LibTorch has this many streams in its pool; a further one would be one of these again.
constexpr size_t kStreams = 32;
static_assert(kStreams >= 2 * kMostDeviceLanes);

void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, error,
                              std::string("CUDA error: ") + cudaGetErrorString(error));
}

// Lets many threads use the device, or one capture a graph: an allocation by another thread during
// a capture can invalidate it. A waiting capture goes before new users; otherwise lanes that
// overlap would hold it up for ever.
class CaptureLock {
 public:
  CaptureLock() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~CaptureLock() { pthread_rwlock_destroy(&lock_); }
  CaptureLock(const CaptureLock&) = delete;
  CaptureLock& operator=(const CaptureLock&) = delete;

  void lock() { pthread_rwlock_wrlock(&lock_); }
  void lock_shared() { pthread_rwlock_rdlock(&lock_); }
  void unlock() { pthread_rwlock_unlock(&lock_); }
  void unlock_shared() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

// Makes a stream the thread's current one, and has backward passes run on this thread. One thread
// of autograd for all lanes would make them wait for each other.
class StreamScope {
 public:
  explicit StreamScope(c10::cuda::CUDAStream stream)
      : guard_(stream), before_(c10::AutogradState::get_tls_state()) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope() { c10::AutogradState::set_tls_state(before_); }

 private:
  const c10::cuda::CUDAStreamGuard guard_;
  const c10::AutogradState before_;
};

// Switches TF32 for the whole process, so that it needs the exclusive lock.
class MatrixMath {
 public:
  explicit MatrixMath(bool tf32) { at::globalContext().setAllowTF32CuBLAS(tf32); }
  MatrixMath(const MatrixMath&) = delete;
  MatrixMath& operator=(const MatrixMath&) = delete;
  ~MatrixMath() { at::globalContext().setAllowTF32CuBLAS(false); }
};

class CudaGraph : public DeviceGraph {
 public:
  CudaGraph(CaptureLock& lock, std::unique_ptr<at::cuda::CUDAGraph> graph)
      : lock_(lock), graph_(std::move(graph)) {}
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override {
    const std::shared_lock<CaptureLock> use(lock_);
    graph_.reset();
  }

  void Replay() override { graph_->replay(); }

 private:
  CaptureLock& lock_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

// Captures `work` on the current stream, with its temporaries in the memory of `pool`. Needs the
// exclusive lock.
std::unique_ptr<at::cuda::CUDAGraph> Record(at::cuda::MempoolId_t pool,
                                            const std::function<void()>& work) {
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    try {
      graph->capture_end();
    } catch (const c10::Error& error) {
      // The allocator goes on sending this stream's memory to the graph, so the process can't.
      TORCH_CHECK(false, "CUDA error: a capture can't be ended: ", error.what_without_backtrace());
    }
    throw;
  }
  graph->capture_end();
  return graph;
}

class CudaDevice;

class CudaStream : public DeviceStream {
 public:
  CudaStream(std::shared_ptr<CudaDevice> device, c10::cuda::CUDAStream stream);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  at::Device device() const override { return stream_.device(); }
  void Run(absl::FunctionRef<void()> work) override;
  std::unique_ptr<DeviceGraph> Capture(bool tf32, std::function<void()> work) override;
  void Synchronize() override;
  at::Tensor HostTensor(at::IntArrayRef sizes, at::ScalarType type) override {
    return at::zeros(sizes, at::TensorOptions(type).pinned_memory(true));
  }

 private:
  const std::shared_ptr<CudaDevice> device_;
  const c10::cuda::CUDAStream stream_;
  // Owns the memory of this stream's graphs, and is never replayed. They share memory, because they
  // run one after the other and keep nothing in it between two replays; LibTorch can't use it again
  // once no graph does. Null before the first capture.
  std::unique_ptr<at::cuda::CUDAGraph> memory_;
};

class CudaDevice : public StreamSource, public std::enable_shared_from_this<CudaDevice> {
 public:
  explicit CudaDevice(const cudaDeviceProp& properties) : properties_(properties) {}

  AcceleratorInfo info() const override {
    char uuid[64];
    const auto* const byte = reinterpret_cast<const unsigned char*>(properties_.uuid.bytes);
    std::snprintf(uuid, sizeof(uuid),
                  "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                  byte[0], byte[1], byte[2], byte[3], byte[4], byte[5], byte[6], byte[7], byte[8],
                  byte[9], byte[10], byte[11], byte[12], byte[13], byte[14], byte[15]);
    return {uuid, properties_.name,
            std::to_string(properties_.major) + "." + std::to_string(properties_.minor),
            properties_.totalGlobalMem};
  }

  DeviceMemory Memory() override {
    size_t free = 0, total = 0;
    Check(cudaMemGetInfo(&free, &total));
    return {free, total};
  }

  std::unique_ptr<DeviceStream> NewStream() override {
    c10::cuda::CUDAStream stream = TakeStream();
    try {
      return std::make_unique<CudaStream>(shared_from_this(), stream);
    } catch (...) {
      Return(stream);
      throw;
    }
  }

  void ReleaseMemory() override {
    const std::shared_lock<CaptureLock> use(lock_);
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  void Return(c10::cuda::CUDAStream stream) {
    const std::lock_guard<std::mutex> hold(mutex_);
    free_.push_back(stream);
  }

  CaptureLock& lock() { return lock_; }

 private:
  c10::cuda::CUDAStream TakeStream() {
    const std::lock_guard<std::mutex> hold(mutex_);
    TORCH_CHECK(!free_.empty() || made_ < kStreams, "all ", kStreams, " streams are in use");
    if (free_.empty()) {
      ++made_;
      return c10::cuda::getStreamFromPool();
    }
    const c10::cuda::CUDAStream stream = free_.back();
    free_.pop_back();
    return stream;
  }

  const cudaDeviceProp properties_;
  CaptureLock lock_;
  std::mutex mutex_;
  std::vector<c10::cuda::CUDAStream> free_;  // guarded by mutex_
  size_t made_ = 0;                          // guarded by mutex_
};

CudaStream::CudaStream(std::shared_ptr<CudaDevice> device, c10::cuda::CUDAStream stream)
    : device_(std::move(device)), stream_(stream) {}

CudaStream::~CudaStream() {
  {
    const std::shared_lock<CaptureLock> use(device_->lock());
    memory_.reset();
  }
  device_->Return(stream_);
}

void CudaStream::Run(absl::FunctionRef<void()> work) {
  const std::shared_lock<CaptureLock> use(device_->lock());
  const StreamScope scope(stream_);
  work();
}

std::unique_ptr<DeviceGraph> CudaStream::Capture(bool tf32, std::function<void()> work) {
  const std::unique_lock<CaptureLock> alone(device_->lock());
  // LibTorch doesn't give cached memory back during a capture.
  const DeviceMemory memory = device_->Memory();
  if (memory.free < memory.total / 2) c10::cuda::CUDACachingAllocator::emptyCache();
  const MatrixMath math(tf32);
  const StreamScope scope(stream_);
  if (memory_ == nullptr) {
    const at::Tensor number = at::zeros({1}, at::TensorOptions(stream_.device()));
    memory_ = Record({0, 0}, [&] { const at::Tensor next = number + 1; });
  }
  return std::make_unique<CudaGraph>(device_->lock(), Record(memory_->pool(), work));
}

void CudaStream::Synchronize() {
  // Captures may go on while this thread waits.
  device_->lock().unlock_shared();
  const cudaError_t error = cudaStreamSynchronize(stream_);
  device_->lock().lock_shared();
  Check(error);
}

std::shared_ptr<StreamSource> Open(double memory_share, std::string* why_not) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    *why_not = std::string("no CUDA device: ") +
               (error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
    return nullptr;
  }
  // Waiting threads sleep, because the cores train, too.
  Check(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  // Bits repeat only if each stream has a workspace of this form.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/1);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);
  context.lazyInitDevice(at::kCUDA);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(memory_share, /*device=*/0);
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, 0));
  return std::make_shared<CudaDevice>(properties);
}

}  // namespace
}  // namespace ablate::engine

extern "C" __attribute__((visibility("default"))) void ablate_open_device(
    double memory_share, std::shared_ptr<ablate::engine::StreamSource>* opened,
    std::string* why_not) {
  *opened = ablate::engine::Open(memory_share, why_not);
}
