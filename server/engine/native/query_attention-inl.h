// Computes attention of one query per head to the rows of a sequence, without keys and values of
// these rows. This costs 2·heads·width per row; keys and values by Gemm would cost 2·width².
// Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_QUERY_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_QUERY_ATTENTION_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_QUERY_ATTENTION_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_QUERY_ATTENTION_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// Σ x·y of [RoundUp(n)]; y is 0 from n on.
HWY_INLINE float Dot(const float* x, const float* y, int n) {
  V16 sum = Zero();
  for (int i = 0; i < n; i += kLanes) sum = MulAdd(Load(x + i), Load(y + i), sum);
  return Sum(sum);
}

// to ← to + a·x.
HWY_INLINE void AddScaled(float a, const float* x, int n, float* to) {
  for (int i = 0; i < n; i += kLanes) Store(MulAdd(Set(a), Load(x + i), Load(to + i)), to + i);
}

HWY_INLINE void QuerySoftmax(int length, float* scores) {
  const V16 lowest = Set(-std::numeric_limits<float>::infinity());
  V16 largest = lowest;
  for (int u = 0; u < length; u += kLanes) {
    largest = Max(largest, IfThenElse(FirstLanes(length - u), Load(scores + u), lowest));
  }
  HWY_ALIGN float lanes[kLanes];
  Store(largest, lanes);
  float highest = lanes[0];
  for (const float lane : lanes) highest = lane > highest ? lane : highest;
  V16 sum = Zero();
  for (int u = 0; u < length; u += kLanes) {
    const V16 e = IfThenElseZero(FirstLanes(length - u), Exp(Sub(Load(scores + u), Set(highest))));
    sum = Add(sum, e);
    Store(e, scores + u);
  }
  const V16 inverse = Set(1.0f / Sum(sum));
  for (int u = 0; u < length; u += kLanes) Store(Mul(Load(scores + u), inverse), scores + u);
}

HWY_INLINE void QuerySigmoid(int length, float* scores) {
  for (int u = 0; u < length; u += kLanes) {
    Store(IfThenElseZero(FirstLanes(length - u), Sigmoid(Load(scores + u))), scores + u);
  }
}

HWY_NOINLINE void ForwardQueryAttention(const QueryAttention& a) {
  const int width = RoundUp(a.width), length = RoundUp(a.length);
  for (int h = 0; h < a.heads; ++h) {
    float* const weights = a.weights + h * length;
    for (int u = 0; u < a.length; ++u) {
      weights[u] = a.scale * Dot(a.rows[u], a.queries + h * width, a.width) + a.offsets[h];
    }
    if (a.kind == AttentionKind::kSoftmax) {
      QuerySoftmax(a.length, weights);
    } else {
      QuerySigmoid(a.length, weights);
    }
    float* const seen = a.seen + h * width;
    for (int f = 0; f < width; f += kLanes) Store(Zero(), seen + f);
    float sum = 0;
    for (int u = 0; u < a.length; ++u) {
      const float weight = a.mask != nullptr ? weights[u] * a.mask[h * length + u] : weights[u];
      AddScaled(weight, a.rows[u], a.width, seen);
      sum += weight;
    }
    a.sums[h] = sum;
  }
}

HWY_NOINLINE void BackQueryAttention(const QueryAttentionBack& b) {
  const QueryAttention& a = b.forward;
  const int width = RoundUp(a.width), length = RoundUp(a.length);
  for (int h = 0; h < a.heads; ++h) {
    const float* const weights = a.weights + h * length;
    const float* const mask = a.mask != nullptr ? a.mask + h * length : nullptr;
    float* const dqueries = b.dqueries + h * width;
    for (int f = 0; f < width; f += kLanes) Store(Zero(), dqueries + f);
    const auto dweight = [&](int u) HWY_ATTR {
      const float d = Dot(a.rows[u], b.dseen + h * width, a.width) + b.dsums[h];
      return mask != nullptr ? d * mask[u] : d;
    };
    // Softmax subtracts Σ_u w·dw from each gradient.
    float mean = 0;
    if (a.kind == AttentionKind::kSoftmax) {
      for (int u = 0; u < a.length; ++u) mean += weights[u] * dweight(u);
    }
    float doffset = 0;
    for (int u = 0; u < a.length; ++u) {
      const float slope =
          a.kind == AttentionKind::kSoftmax ? weights[u] : weights[u] * (1 - weights[u]);
      const float dscore = slope * (dweight(u) - mean);
      doffset += dscore;
      AddScaled(dscore * a.scale, a.rows[u], a.width, dqueries);
      float* const drow = b.drows + u * width;
      AddScaled(dscore * a.scale, b.row_queries + h * width, a.width, drow);
      AddScaled(mask != nullptr ? weights[u] * mask[u] : weights[u], b.row_dseen + h * width,
                a.width, drow);
    }
    b.doffsets[h] = doffset;
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_QUERY_ATTENTION_INL_H_
