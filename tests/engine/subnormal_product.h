// Computes with subnormal numbers on the calling thread, to see how it treats them.
#ifndef ABLATE_TESTS_ENGINE_SUBNORMAL_PRODUCT_H_
#define ABLATE_TESTS_ENGINE_SUBNORMAL_PRODUCT_H_

namespace ablate::engine {

// Returns 1e-40 · 1: 0 if subnormal operands are 0. The factors are read at run time, so that the
// compiler doesn't compute it.
inline float SubnormalProduct() {
  const volatile float subnormal = 1e-40F, one = 1;
  const volatile float product = subnormal * one;
  return product;
}

// Returns 1e-20 · 1e-20: 0 if subnormal results are 0.
inline float SmallProduct() {
  const volatile float small = 1e-20F;
  const volatile float product = small * small;
  return product;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_SUBNORMAL_PRODUCT_H_
