// Computes what the kernels compute, in double and by plain loops. Each function takes a kernel's
// arguments before the kernel has run, reads the same inputs, and returns the outputs: matrices
// without padding, row by row.
#ifndef ABLATE_TESTS_NATIVE_KERNEL_REFERENCE_H_
#define ABLATE_TESTS_NATIVE_KERNEL_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "server/engine/native/kernels.h"

namespace ablate::engine::native::reference {

using Doubles = std::vector<double>;

Doubles Multiplied(const Gemm& g);

struct Norm {
  Doubles x_hat, y;           // [features][columns]
  Doubles rstd, along_scale;  // [columns]
};
Norm Normalised(const NormForward& n);

struct Pointwise {
  Doubles f;
  Doubles slope;
  Doubles y;
};
Pointwise Normalised(const PointwiseNormForward& n);

struct PointwiseGradients {
  Doubles dx;
  Doubles dgain;
  Doubles dshift;
  double dalpha;
  double doffset;
};
PointwiseGradients BackThrough(const PointwiseNormBack& n);

struct NormGradients {
  Doubles dx;             // [features][columns]
  Doubles dgain, dshift;  // [features]
};
NormGradients BackThrough(const NormBack& n);

// Returns ∂(Σ dy·y)/∂x of the norm itself, by central differences; for small sizes.
Doubles DerivativeOf(const NormForward& n, const float* dy);

struct BatchNorm {
  Doubles x_hat, y;              // [features][columns]
  Doubles mean, variance, rstd;  // [features]
};
BatchNorm Normalised(const BatchNormForward& n);
NormGradients BackThrough(const BatchNormBack& n);

struct Attended {
  Doubles weights, dropped;  // [keys][queries]
  Doubles context;           // [features][queries]
};
Attended Attend(const Attention& a);

struct AttentionGradients {
  Doubles dq, dk, dv;  // [features][positions]
};
AttentionGradients BackThrough(const AttentionBack& b);

struct AbsorbedAttended {
  Doubles weights;  // [heads][length]
  Doubles seen;     // [heads][width]
  Doubles sums;     // [heads]
};
AbsorbedAttended Attend(const AbsorbedAttention& a);

struct AbsorbedAttentionGradients {
  Doubles dqueries;  // [heads][width]
  Doubles doffsets;  // [heads]
  Doubles dscores;   // [heads][length]
  Doubles drows;     // [length][width]
};
AbsorbedAttentionGradients BackThrough(const AbsorbedAttentionBack& b);

// Returns the function of the gates for a gated activation.
double ActivationOf(Activation activation, double x);
// By central differences; 0 if kRelu has no derivative.
double SlopeOf(Activation activation, double x);

struct Losses {
  Doubles losses;             // [columns]
  Doubles gradient;           // [vocabulary][columns]
  std::vector<int32_t> best;  // [columns]
  Doubles log_sum;            // [columns], log Σ exp of the logits
};
Losses LossesOf(const CrossEntropy& l);

struct Stepped {
  Doubles values, first, second;
};
Stepped StepOf(const AdamStep& s);
Stepped StepOf(const SgdStep& s);
Stepped StepOf(const LionStep& s);

}  // namespace ablate::engine::native::reference

#endif  // ABLATE_TESTS_NATIVE_KERNEL_REFERENCE_H_
