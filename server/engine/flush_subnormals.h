// Sets how the calling thread treats subnormal numbers: float32 below 1.2e-38, float64 below
// 2.2e-308.
#ifndef ABLATE_SERVER_ENGINE_FLUSH_SUBNORMALS_H_
#define ABLATE_SERVER_ENGINE_FLUSH_SUBNORMALS_H_

#include <cstdint>
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace ablate::engine {

// While it lives, floating-point instructions of the calling thread take subnormal operands as 0
// and return 0 instead of a subnormal result. Processors compute with subnormal numbers by
// microcode, so that a step full of them takes up to 47 times as long. A thread that is created
// meanwhile inherits the mode, as POSIX demands of pthread_create. LibTorch's threads are created
// by the thread whose operations they share. Does nothing on processors other than x86-64 and
// AArch64.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(Mode()) {
    if (const uint64_t mode = before_ | kFlush; mode != before_) SetMode(mode);
  }
  ~FlushSubnormals() {
    if ((before_ & kFlush) != kFlush) SetMode((Mode() & ~kFlush) | (before_ & kFlush));
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__SSE2__)
  // FTZ and DAZ of MXCSR.
  static constexpr uint64_t kFlush = 0x8040;
  static uint64_t Mode() { return _mm_getcsr(); }
  static void SetMode(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  // FZ of FPCR.
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t Mode() {
    uint64_t mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void SetMode(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t Mode() { return 0; }
  static void SetMode(uint64_t) {}
#endif

  const uint64_t before_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_FLUSH_SUBNORMALS_H_
