// Allocates arrays of floats for kernels.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_FLOATS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_FLOATS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "absl/status/status.h"
#include "server/engine/native/kernels.h"

namespace ablate::engine::native {

// An array of floats, aligned to a cache line and followed by kColumns further floats, which
// kernels may read. Throws std::bad_alloc.
class Floats {
 public:
  Floats() = default;
  explicit Floats(int64_t size) { Reserve(size); }

  // Makes room for `size` floats. If the array grows, all floats become 0; otherwise they keep
  // their values.
  float* Reserve(int64_t size) {
    if (size > size_) {
      data_.reset(static_cast<float*>(::operator new[](
          static_cast<size_t>(size + kColumns) * sizeof(float), std::align_val_t(kAlignment))));
      std::fill_n(data_.get(), size + kColumns, 0.0f);
      size_ = size;
    }
    return data_.get();
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(float* floats) const {
      ::operator delete[](floats, std::align_val_t(kAlignment));
    }
  };

  std::unique_ptr<float[], Free> data_;
  int64_t size_ = 0;
};

// Returns the Status for a caught std::bad_alloc: RESOURCE_EXHAUSTED.
inline absl::Status OutOfMemory() {
  return absl::ResourceExhaustedError("memory ran out in a native pass");
}

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_FLOATS_H_
