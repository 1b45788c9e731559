// Describes the distributions of initial values: the table in docs/reference/model.md. Torch-free;
// the server reads it, too.
#ifndef ABLATE_SERVER_ENGINE_CORE_INITIAL_DRAW_H_
#define ABLATE_SERVER_ENGINE_CORE_INITIAL_DRAW_H_

#include "server/engine/config.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

enum class Distribution { kConstant, kNormal, kUniform };

struct InitialDraw {
  Distribution distribution = Distribution::kConstant;
  double scale = 0;          // the constant, the standard deviation, or half the uniform range
  bool then_zeroed = false;  // drawn, because PyTorch's generator advances, and then set to 0
  double factor = 1;         // of the drawn rows from `first_row` on
  int64_t first_row = 0;
};

// Returns the distribution of each element of a parameter.
InitialDraw DrawOf(const ParameterInfo& parameter, const ModelConfig& model);

// Returns the variance of a drawn element, before the factor.
double VarianceOf(const InitialDraw& draw);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_INITIAL_DRAW_H_
