// Fused loops of the norm's forward and backward on the CPU. Torch-free: compiled apart, for
// vectors.
#ifndef ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_
#define ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_

#include <cstdint>

#include "server/engine/config.h"

namespace ablate::engine {

// A norm over the features of rows, of every kind but kBatch. Scalar is float or double.
template <typename Scalar>
struct NormRows {
  const Scalar* x;      // [rows, d]
  const Scalar* gain;   // [d], or null for 1
  const Scalar* shift;  // [d], or null for 0
  int64_t rows;
  int64_t d;
  const NormConfig& config;
};

// y [rows, d].
void NormRowsForward(const NormRows<float>& norm, float* y);
void NormRowsForward(const NormRows<double>& norm, double* y);

// Given g [rows, d]: dx [rows, d] is written; dgain and dshift [d], where not null, are added to.
void NormRowsBackward(const NormRows<float>& norm, const float* g, float* dx, float* dgain,
                      float* dshift);
void NormRowsBackward(const NormRows<double>& norm, const double* g, double* dx, double* dgain,
                      double* dshift);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_NORM_KERNEL_H_
