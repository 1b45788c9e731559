// Computes the norm's forward and backward pass on a CPU, in one loop each. Torch-free: compiled
// separately, with vectorization.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_NORM_KERNEL_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_NORM_KERNEL_H_

#include <cstdint>

#include "server/engine/config.h"

namespace ablate::engine {

// A norm over the features of each row, of every kind except kBatch. Scalar is float or double.
template <typename Scalar>
struct NormRows {
  const Scalar* x;      // [rows, d]
  const Scalar* gain;   // [d], or null for 1
  const Scalar* shift;  // [d], or null for 0
  int64_t rows;
  int64_t d;
  const NormConfig& config;
};

// Computes y [rows, d].
void NormRowsForward(const NormRows<float>& norm, float* y);
void NormRowsForward(const NormRows<double>& norm, double* y);

// Computes dx [rows, d] from g [rows, d]; adds to dgain and dshift [d] unless they are null.
void NormRowsBackward(const NormRows<float>& norm, const float* g, float* dx, float* dgain,
                      float* dshift);
void NormRowsBackward(const NormRows<double>& norm, const double* g, double* dx, double* dgain,
                      double* dshift);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_NORM_KERNEL_H_
