#include "server/engine/analyze/norms.h"

#include <algorithm>
#include <cfloat>

#include "absl/strings/strip.h"
#include "server/engine/core/hook_points.h"

namespace ablate::engine {
namespace {

constexpr char kFinalNorm[] = "final_norm";

// Returns the parameters of the norm whose input is this hook point; null if there is none.
const NormParameters* NormBehind(const ModelHookPoint& place, const ModelParameters& parameters) {
  const BlockParameters& block = parameters.blocks[static_cast<size_t>(place.block)];
  switch (place.hook_point) {
    case HookPoint::kAttentionNormInput:
      return &block.attention_norm;
    case HookPoint::kAttentionPostNormInput:
      return &block.attention_post_norm;
    case HookPoint::kFeedForwardNormInput:
      return &block.feed_forward_norm;
    case HookPoint::kFeedForwardPostNormInput:
      return &block.feed_forward_post_norm;
    case HookPoint::kEmbeddingNormInput:
      return &parameters.embedding_norm;
    case HookPoint::kFinalNormInput:
      return &parameters.final_norm;
    default:
      return nullptr;
  }
}

at::Tensor RowSums(const at::Tensor& values) { return values.sum(1); }

at::Tensor RowCosines(const at::Tensor& a, const at::Tensor& b) {
  // Take roots first, because the product of the squares of small gradients may underflow.
  return RowSums(a * b) / (RowSums(a.square()).sqrt() * RowSums(b.square()).sqrt());
}

struct NormStandardising {
  at::Tensor x_hat;    // [v, m]
  at::Tensor sigma;    // [v, 1]
  at::Tensor divisor;  // ĝ is the sum of g·x̂ divided by it, [v, 1]
};

NormStandardising StandardisingOf(const at::Tensor& x, const NormConfig& config) {
  const auto m = static_cast<double>(x.size(1));
  const at::Tensor centred = FormulaOf(config.kind).centres ? x - x.mean(1, true) : x;
  const at::Tensor squares = centred.square().sum(1, true);
  if (config.deviation == NormDeviation::kUnbiasedEpsOutside) {
    // A vector of equal numbers has deviation 0, even if it has one element.
    const at::Tensor flat = squares.eq(0);
    const at::Tensor deviation =
        (squares.masked_fill(flat, 1) / (m - 1)).sqrt().masked_fill(flat, 0);
    const at::Tensor sigma = deviation + config.eps;
    return {centred / sigma, sigma, ((m - 1) * deviation / sigma).masked_fill(flat, 1)};
  }
  const double divisor = FormulaOf(config.kind).averages ? m : 1;
  const at::Tensor sigma = (squares / divisor + config.eps).sqrt();
  return {centred / sigma, sigma, at::full_like(sigma, divisor)};
}

}  // namespace

std::vector<NormPlace> NormPlacesOf(const ModelConfig& model, const ModelParameters& parameters) {
  std::vector<NormPlace> norms;
  for (const ModelHookPoint& place : HookPointsOf(model)) {
    const NormParameters* const norm = NormBehind(place, parameters);
    if (norm == nullptr) continue;
    const std::string name(absl::StripSuffix(place.name, ".input"));
    norms.push_back({name, place.name, name + ".output", *norm});
  }
  // Hook points outside blocks are listed with those of the first block.
  std::stable_partition(norms.begin(), norms.end(),
                        [](const NormPlace& norm) { return norm.name != kFinalNorm; });
  return norms;
}

at::Tensor VectorsOf(const at::Tensor& rows, NormKind kind) {
  return kind == NormKind::kBatch ? rows.t() : rows;
}

NormParts PartsOf(const at::Tensor& x, const at::Tensor& g, const NormConfig& config) {
  const auto [x_hat, sigma, divisor] = StandardisingOf(x, config);
  const at::Tensor mean =
      FormulaOf(config.kind).centres ? g.mean(1, true) : at::zeros_like(sigma);  // [v, 1]
  const at::Tensor radial = x_hat * ((g * x_hat).sum(1, true) / divisor);        // [v, m]
  const at::Tensor centred = g - mean;
  const at::Tensor projected = centred - radial;
  const at::Tensor exact = projected / sigma;
  // Rounding error of a result that should be 0.
  const at::Tensor rounding =
      static_cast<double>(g.size(1)) * (4 * DBL_EPSILON * std::get<0>(g.abs().max(1))).square();
  const at::Tensor left = RowSums(projected.square());
  NormParts parts;
  parts.sigma = sigma.squeeze(1);
  parts.gradient = RowSums(g.square());
  parts.mean = static_cast<double>(g.size(1)) * mean.square().squeeze(1);
  parts.radial = RowSums(radial.square());
  parts.centred = RowSums(centred.square());
  parts.projected = left.masked_fill(left.le(rounding), 0);
  parts.cosine_centred = RowCosines(centred, exact);
  parts.cosine_projected = RowCosines(projected, exact);
  parts.cosine_identity = RowCosines(g, exact);
  return parts;
}

at::Tensor SigmasOf(const at::Tensor& x, const NormConfig& config) {
  return StandardisingOf(x, config).sigma;
}

}  // namespace ablate::engine
