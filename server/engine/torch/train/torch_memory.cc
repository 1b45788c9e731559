#include "server/engine/torch/train/torch_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstdint>
#include <cstdlib>

namespace ablate::engine {
namespace {

// Alignment of large blocks. An address that isn't aligned so needs no search when it is freed.
constexpr size_t kPage = 4096;

}  // namespace

KeptBlocks& KeptBlocks::Get() {
  static auto* const blocks = new KeptBlocks;
  return *blocks;
}

at::DataPtr KeptBlocks::allocate(size_t bytes) {
  const bool large = bytes >= kLeast && bytes <= kLargest;
  void* memory = large ? Take(bytes) : nullptr;
  if (memory == nullptr && large) {
    const size_t pages = (bytes + kPage - 1) / kPage * kPage;
    memory = std::aligned_alloc(kPage, pages);
    const MutexLock lock(&mutex_);
    if (memory != nullptr) sizes_.emplace(memory, pages);
  }
  if (memory == nullptr) memory = c10::alloc_cpu(bytes);  // throws if there is no memory
  return {memory, memory, raw_deleter(), at::Device(at::kCPU)};
}

at::DeleterFnPtr KeptBlocks::raw_deleter() const {
  return [](void* memory) {
    if (!Get().Keep(memory)) c10::free_cpu(memory);
  };
}

void KeptBlocks::copy_data(void* to, const void* from, size_t bytes) const {
  default_copy_data(to, from, bytes);
}

size_t KeptBlocks::kept() const {
  const MutexLock lock(&mutex_);
  return kept_bytes_;
}

void KeptBlocks::Clear() {
  const MutexLock lock(&mutex_);
  while (!kept_.empty()) FreeOldest();
}

void* KeptBlocks::Take(size_t bytes) {
  const MutexLock lock(&mutex_);
  auto best = kept_.end();
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    if (at->bytes < bytes || at->bytes > bytes + bytes / 4) continue;
    if (best == kept_.end() || at->bytes < best->bytes) best = at;
  }
  if (best == kept_.end()) return nullptr;
  void* const memory = best->memory;
  kept_bytes_ -= best->bytes;
  kept_.erase(best);
  return memory;
}

bool KeptBlocks::Keep(void* memory) {
  if (memory == nullptr || reinterpret_cast<uintptr_t>(memory) % kPage != 0) return false;
  const MutexLock lock(&mutex_);
  const auto known = sizes_.find(memory);
  if (known == sizes_.end()) return false;
  kept_.push_back({memory, known->second});
  kept_bytes_ += known->second;
  while (kept_bytes_ > kMost) FreeOldest();
  return true;
}

void KeptBlocks::FreeOldest() {
  const Block block = kept_.front();
  kept_.pop_front();
  kept_bytes_ -= block.bytes;
  sizes_.erase(block.memory);
  std::free(block.memory);
}

void KeepLargeBlocks() {
  static const bool set = [] {
    c10::SetCPUAllocator(&KeptBlocks::Get());
    return true;
  }();
  (void)set;
}

}  // namespace ablate::engine
