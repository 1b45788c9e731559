// Reuses the large blocks of memory that tensors on the CPU free.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_MEMORY_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_MEMORY_H_

#include <ATen/ATen.h>

#include <cstddef>
#include <list>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace ablate::engine {

// Allocates as LibTorch does, but keeps some freed large blocks for later tensors. The C library
// returns each of these to the system when it is freed, and the system clears all pages of the next
// one: a sixth of a step of GPT-2 in bfloat16. Thread-safe.
class KeptBlocks : public at::Allocator {
 public:
  // Smaller ones are left to the C library, which reuses them if mallopt tells it to. Larger ones
  // are vectors of all parameters, which are rarely made. Logits of 512 tokens of GPT-2 take 103
  // MB, its embedding 154 MB.
  static constexpr size_t kLeast = size_t{32} << 20, kLargest = size_t{256} << 20;
  static constexpr size_t kMost = size_t{512} << 20;  // in total

  // Returns the only one, which is never destroyed, because tensors may outlive everything else.
  static KeptBlocks& Get();

  at::DataPtr allocate(size_t bytes) override;
  at::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override;

  // Returns the bytes that are kept now.
  size_t kept() const;
  // Returns all that is kept to the system.
  void Clear();

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };

  // Returns the smallest kept block that has so many bytes and at most a quarter more, or null.
  void* Take(size_t bytes);
  // Returns false if the memory isn't one of the large blocks.
  bool Keep(void* memory);
  void FreeOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<void*, size_t> sizes_ ABSL_GUARDED_BY(mutex_);  // of all blocks, also in use
  std::list<Block> kept_ ABSL_GUARDED_BY(mutex_);  // by time, the one freed last at the end
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Makes LibTorch allocate with KeptBlocks in this process, from the first call on.
void KeepLargeBlocks();

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_TORCH_MEMORY_H_
