#include "tests/engine/on_device/strict_device.h"

#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ablate::engine {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
const c10::Device kStrict(kType, 0);
thread_local int in_stream = 0;  // depth of DeviceStream::Run
thread_local bool in_graph = false;

// --- Memory

size_t PagesOf(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

std::atomic<size_t> most = 0, in_use = 0;  // bytes

struct Block {
  void* memory;
  size_t bytes;
};

void FreeBlock(void* context) {
  const auto* const block = static_cast<Block*>(context);
  munmap(block->memory, block->bytes);
  in_use -= block->bytes;
  delete block;
}

// Maps pages that nobody may read or write.
class ClosedAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, kStrict};
    const size_t pages = PagesOf(bytes);
    if ((in_use += pages) > most) {
      in_use -= pages;
      throw c10::OutOfMemoryError({"", "", 0}, "the strict device is full");
    }
    void* const memory =
        mmap(nullptr, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(memory != MAP_FAILED, "no memory for ", bytes, " bytes");
    return {memory, new Block{memory, pages}, FreeBlock, kStrict};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "the host copies memory of the device");
  }
};

ClosedAllocator allocator;

// Opens the memory of tensors while a kernel runs.
class Opened {
 public:
  Opened() = default;
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    for (const c10::Storage& storage : storages_) Protect(storage, PROT_NONE);
  }

  // Returns a tensor of the CPU in the same memory.
  at::Tensor Alias(const at::Tensor& tensor) {
    const c10::Storage storage = tensor.storage();
    // Results that an operation sizes begin empty.
    if (storage.nbytes() == 0) return at::empty(tensor.sizes(), tensor.scalar_type());
    Protect(storage, PROT_READ | PROT_WRITE);
    storages_.push_back(storage);
    return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(),
                         tensor.strides(), at::TensorOptions(tensor.scalar_type()));
  }

 private:
  static void Protect(const c10::Storage& storage, int access) {
    TORCH_CHECK(mprotect(storage.mutable_data(), PagesOf(storage.nbytes()), access) == 0,
                "mprotect: ", std::strerror(errno));
  }

  std::vector<c10::Storage> storages_;
};

// --- Operations

void CheckInStream(const std::string& operation) {
  TORCH_CHECK(in_stream > 0, operation, " on the device outside DeviceStream::Run");
}

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  CheckInStream("empty");
  return at::detail::empty_generic(size, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                        std::optional<at::ScalarType> type, std::optional<at::Layout>,
                        std::optional<at::Device>, std::optional<bool>) {
  CheckInStream("empty_strided");
  return at::detail::empty_strided_generic(size, stride, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

void CopyBytes(const at::Tensor& from, const at::Tensor& to) {
  Opened opened;
  const auto host = [&](const at::Tensor& tensor) {
    return tensor.is_cpu() ? tensor : opened.Alias(tensor);
  };
  host(to).copy_(host(from));
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool) {
  CheckInStream("copy");
  TORCH_CHECK(!in_graph || from.device() == to.device(), "a graph copies from or to the host");
  CopyBytes(from, to);
  return to;
}

// Operations for which CUDA throws if deterministic algorithms are asked for (LibTorch 2.13,
// at::globalContext().alertNotDeterministic), among those with which analyses could do.
const std::set<std::string>& NotDeterministic() {
  static const auto* const names = new std::set<std::string>{
      "aten::histc",      "aten::kthvalue",           "aten::kthvalue.values",
      "aten::cumsum.out", "aten::median.dim",         "aten::median.dim_values",
      "aten::put_",       "aten::nll_loss2d_forward", "aten::scatter_reduce.two_out",
      "aten::multinomial"};
  return *names;
}

// Operations whose result the host sees, or whose result has a size that the host must know.
const std::set<std::string>& Waits() {
  static const auto* const names =
      new std::set<std::string>{"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select",
                                "aten::bincount", "aten::equal"};
  return *names;
}

// Replaces tensors of the device by aliases on the CPU.
class HostArguments {
 public:
  HostArguments(const std::string& operation, Opened* opened)
      : operation_(operation), opened_(opened) {}

  c10::IValue Of(const c10::IValue& value) {
    if (value.isTensor()) return Alias(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(Alias(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor.has_value() ? std::optional(Alias(*tensor)) : std::nullopt);
      }
      return list;
    }
    if (value.isDevice()) return c10::Device(c10::kCPU);
    return value;
  }

  // Takes over the sizes that the operation has given to empty tensors.
  void TakeSizes() {
    for (const auto& [device, host] : aliases_) {
      if (host.numel() == 0 || device.storage().nbytes() > 0) continue;
      const at::Tensor sized = OnDevice(host);
      c10::TensorImpl* const impl = device.unsafeGetTensorImpl();
      impl->set_storage_keep_dtype(sized.storage());
      impl->set_sizes_and_strides(sized.sizes(), sized.strides());
    }
  }

  // Returns a result of the operation as a tensor of the device.
  at::Tensor ToDevice(const at::Tensor& result) const {
    if (!result.defined()) return result;
    for (const auto& [device, host] : aliases_) {
      if (host.is_same(result)) return device;
      TORCH_CHECK(!result.has_storage() || result.numel() == 0 ||
                      !result.storage().is_alias_of(host.storage()),
                  operation_, " returns a view, which strict_device.cc doesn't know");
    }
    return OnDevice(result);
  }

 private:
  static at::Tensor OnDevice(const at::Tensor& host) {
    const at::Tensor device =
        at::empty_strided(host.sizes(), host.strides(), host.options().device(kStrict));
    CopyBytes(host, device);
    return device;
  }

  at::Tensor Alias(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.is_cpu()) {
      TORCH_CHECK(tensor.dim() == 0, operation_, " gets a tensor ", tensor.sizes(),
                  " of the host with tensors of the device");
      return tensor;
    }
    aliases_.emplace_back(tensor, opened_->Alias(tensor));
    return aliases_.back().second;
  }

  const std::string& operation_;
  Opened* const opened_;
  std::vector<std::pair<at::Tensor, at::Tensor>> aliases_;
};

void OnTheHost(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string name =
      schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
  CheckInStream(name);
  TORCH_CHECK(NotDeterministic().count(name) == 0, name, " isn't deterministic on CUDA");
  TORCH_CHECK(!in_graph || Waits().count(name) == 0, name, " waits for the device in a graph");
  Opened opened;
  HostArguments arguments(name, &opened);
  const size_t count = schema.arguments().size(), first = stack->size() - count;
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = arguments.Of((*stack)[i]);
  op.callBoxed(stack);
  arguments.TakeSizes();
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& result = (*stack)[i];
    if (result.isTensor()) {
      result = arguments.ToDevice(result.toTensor());
    } else if (result.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : result.toTensorVector()) {
        list.push_back(arguments.ToDevice(tensor));
      }
      result = list;
    }
  }
}

// LibTorch has this operation on GPUs only.
std::tuple<at::Tensor, at::Tensor> RmsNormBackward(const at::Tensor& gradient, const at::Tensor& x,
                                                   at::IntArrayRef, const at::Tensor& rstd,
                                                   const std::optional<at::Tensor>& gain,
                                                   std::array<bool, 2>) {
  const at::Tensor x_hat = x * rstd, g = gain.has_value() ? gradient * *gain : gradient;
  return {(g - x_hat * (g * x_hat).mean(-1, true)) * rstd,
          gain.has_value() ? (gradient * x_hat).sum(0) : at::Tensor()};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&OnTheHost>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", Empty);
  m.impl("empty_strided", EmptyStrided);
  m.impl("_copy_from", CopyFrom);
  m.impl("_fused_rms_norm_backward", RmsNormBackward);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
}

// --- The device

// One device with one stream, which is never behind.
struct Guard final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return kStrict; }
  c10::Device getDevice() const override { return kStrict; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kStrict);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct DeviceHooks : public at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

// As a GPU's stream: backward passes run on the calling thread.
class StrictStream : public DeviceStream {
 public:
  at::Device device() const override { return kStrict; }
  void Run(absl::FunctionRef<void()> work) override {
    const c10::AutogradState before = c10::AutogradState::get_tls_state();
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    ++in_stream;
    try {
      work();
    } catch (...) {
      --in_stream;
      c10::AutogradState::set_tls_state(before);
      throw;
    }
    --in_stream;
    c10::AutogradState::set_tls_state(before);
  }
  std::unique_ptr<DeviceGraph> Capture(bool, std::function<void()> work) override;
  void Synchronize() override {}
  at::Tensor HostTensor(at::IntArrayRef sizes, at::ScalarType type) override {
    return at::zeros(sizes, type);
  }

 private:
  class Graph;
};

// A graph is its work, done again, which must neither wait for the device nor copy from the host.
class StrictStream::Graph : public DeviceGraph {
 public:
  explicit Graph(std::function<void()> work) : work_(std::move(work)) {}
  void Replay() override {
    in_graph = true;
    try {
      work_();
    } catch (...) {
      in_graph = false;
      throw;
    }
    in_graph = false;
  }

 private:
  const std::function<void()> work_;
};

std::unique_ptr<DeviceGraph> StrictStream::Capture(bool, std::function<void()> work) {
  return std::make_unique<Graph>(std::move(work));
}

class StrictStreams : public StreamSource {
 public:
  AcceleratorInfo info() const override {
    const char* const uuid = std::getenv("CUDA_VISIBLE_DEVICES");  // as the server sets it
    return {uuid != nullptr ? uuid : "", "strict device", "9.0", most};
  }
  DeviceMemory Memory() override { return {most - in_use, most}; }
  std::unique_ptr<DeviceStream> NewStream() override { return std::make_unique<StrictStream>(); }
  void ReleaseMemory() override {}
};

void PrintStack(int signal) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

std::shared_ptr<StreamSource> OpenStrictDevice(size_t memory) {
  most = memory;
  static const bool registered = [] {
    c10::register_privateuse1_backend("strict");
    at::RegisterPrivateUse1HooksInterface(new DeviceHooks);
    std::signal(SIGSEGV, PrintStack);
    return true;
  }();
  (void)registered;
  return std::make_shared<StrictStreams>();
}

}  // namespace ablate::engine
