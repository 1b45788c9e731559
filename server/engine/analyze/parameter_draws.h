// Draws random vectors in a model's parameter space. The draws for a tensor depend on the seed and
// the tensor's name, so that models that share a tensor share its draws.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_PARAMETER_DRAWS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_PARAMETER_DRAWS_H_

#include <ATen/ATen.h>

#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/analysis_context.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// Return the vector called `name`, [P], with the options' type and device: every element standard
// normal, drawn in float64, or −1 or 1.
at::Tensor NormalVector(const AnalysisContext& analysis, const ParameterLayout& layout,
                        absl::string_view name, at::TensorOptions options = at::kDouble);
at::Tensor SignVector(const AnalysisContext& analysis, const ParameterLayout& layout,
                      absl::string_view name, at::TensorOptions options = at::kDouble);

// Returns `drawn` [P], which is scaled in place as a direction from `values` [P]:
//
//   raw     as drawn
//   unit    divided by its norm
//   filter  each row of a matrix divided by its norm, times the norm of the row of values; the rest
//   0 layer   each matrix divided by its norm, times the norm of its values; the rest 0
//
// A matrix is a tensor of two dimensions or more. A part with norm 0 in either stays 0.
at::Tensor ScaledDirection(Direction direction, const ParameterLayout& layout,
                           const at::Tensor& values, at::Tensor drawn);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_PARAMETER_DRAWS_H_
