// Lists the norms of a model for analyses, with their inputs and the components of their backward
// pass.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_NORMS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_NORMS_H_

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {

// A norm of a model. NormPlacesOf returns them in the order of a pass.
struct NormPlace {
  std::string name;   // such as block.0.attention_norm, or final_norm
  std::string input;  // the hook points around it
  std::string output;
  NormParameters parameters;
};
std::vector<NormPlace> NormPlacesOf(const ModelConfig& model, const ModelParameters& parameters);

// Returns the vectors that a norm standardises, one per row, from features at tokens [n, d]: a
// token's features [n, d], or for BatchNorm a feature's values at all tokens [d, n].
at::Tensor VectorsOf(const at::Tensor& rows, NormKind kind);

// Effect of a norm's exact backward on the gradients of its vectors. Each tensor is [v], float64. x̂
// is the standardised vector.
struct NormParts {
  at::Tensor sigma;      // denominator of the vector
  at::Tensor gradient;   // ‖g‖²
  at::Tensor mean;       // ‖ḡ‖², 0 if the norm doesn't centre
  at::Tensor radial;     // ‖x̂ĝ‖²
  at::Tensor centred;    // ‖g − ḡ‖²
  at::Tensor projected;  // ‖g − ḡ − x̂ĝ‖², 0 if it is within rounding
  // Cosines of g − ḡ, of g − ḡ − x̂ĝ and of g with the exact gradient; meaningless if `projected` is
  // 0.
  at::Tensor cosine_centred;
  at::Tensor cosine_projected;
  at::Tensor cosine_identity;
};

// Returns the components for vectors x [v, m], with their own statistics, and gradients g [v, m] of
// the standardised vectors; both float64. torch/model/norm.h has the formulas.
NormParts PartsOf(const at::Tensor& x, const at::Tensor& g, const NormConfig& config);

// Returns the denominators of vectors x [v, m], [v, 1], as in PartsOf.
at::Tensor SigmasOf(const at::Tensor& x, const NormConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_NORMS_H_
