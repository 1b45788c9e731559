// Fused loops of the norm's forward and backward on the CPU. Torch-free: compiled apart, for
// vectors.
#ifndef ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_
#define ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_

#include <cstdint>

#include "server/engine/config.h"

namespace ablate::engine {

// One run's norm over rows of d features. Scalar is float or double.
template <typename Scalar>
struct NormRows {
  const Scalar* x;      // [rows, d]
  const Scalar* gain;   // [d], or null for 1
  const Scalar* shift;  // [d], or null for 0
  int64_t rows;
  int64_t d;
  NormKind kind;
  Scalar eps;
};

// y [rows, d].
template <typename Scalar>
void NormForward(const NormRows<Scalar>& norm, Scalar* y);

// Given g [rows, d]: dx [rows, d] is written; dgain and dshift [d], where not null, are added to.
template <typename Scalar>
void NormBackward(const NormRows<Scalar>& norm, const Scalar* g, Scalar* dx, Scalar* dgain,
                  Scalar* dshift);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_
