// The norms of a model as analyses see them: their places, what they standardise, and the parts of
// their backward.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_NORMS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_NORMS_H_

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// A norm of a model, in the order of a pass.
struct NormPlace {
  std::string name;   // such as block.0.attention_norm, or final_norm
  std::string input;  // the sites around it
  std::string output;
  NormParameters parameters;
};
std::vector<NormPlace> NormPlacesOf(const ModelConfig& model, const ModelParameters& parameters);

// Features at tokens [n, d] as the vectors that a norm standardises, each a row: a token's features
// [n, d], or for BatchNorm a feature's values at all tokens [d, n].
at::Tensor VectorsOf(const at::Tensor& rows, NormKind kind);

// What the exact backward of a norm does to the gradients of its vectors. Each [v], float64.
struct NormParts {
  at::Tensor sigma;      // what the vector is divided by
  at::Tensor gradient;   // ‖g‖²
  at::Tensor mean;       // ‖ḡ‖², 0 where the norm does not centre
  at::Tensor radial;     // ‖zĝ‖²
  at::Tensor centred;    // ‖g − ḡ‖²
  at::Tensor projected;  // ‖g − ḡ − zĝ‖², 0 where it is no more than rounding
  // Of g − ḡ, of g − ḡ − zĝ and of g with the exact gradient; of no meaning where `projected` is 0.
  at::Tensor cosine_centred;
  at::Tensor cosine_projected;
  at::Tensor cosine_identity;
};

// Of vectors x [v, m], by their own statistics, with gradients g [v, m] of what they standardise
// to; both float64. norm.h has the formulas.
NormParts PartsOf(const at::Tensor& x, const at::Tensor& g, const NormConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_NORMS_H_
