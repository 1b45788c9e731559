// Random vectors in the space of a model's parameters. What is drawn for a tensor is a function of
// the seed and the tensor's name, so that models that share a tensor share it.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_PARAMETER_DRAWS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_PARAMETER_DRAWS_H_

#include <ATen/ATen.h>

#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/material.h"
#include "server/engine/layout.h"

namespace ablate::engine {

// The vector called `name`, [P] float64: every element standard normal, or −1 or 1.
at::Tensor NormalVector(const Material& material, const ParameterLayout& layout,
                        absl::string_view name);
at::Tensor SignVector(const Material& material, const ParameterLayout& layout,
                      absl::string_view name);

// `drawn` [P], float64, as a direction from `values` [P]:
//
//   raw     as drawn
//   unit    over its norm
//   filter  each row of a matrix over its norm, times that of the row of values; the rest 0
//   layer   each matrix over its norm, times that of its values; the rest 0
//
// where a matrix is a tensor of two dimensions or more. What has norm 0 in either stays 0.
at::Tensor ScaledDirection(Direction direction, const ParameterLayout& layout,
                           const at::Tensor& values, const at::Tensor& drawn);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_PARAMETER_DRAWS_H_
