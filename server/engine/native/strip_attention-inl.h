// Self-attention of one head over sixteen short sequences side by side: a lane is a sequence, so
// that no lane is lost to a length below sixteen, and a vector of weights belongs to one query and
// one key of each. Included once a target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// Where the lanes are at one position: sequences that begin alike share its columns.
struct Nodes {
  Nodes(const StripAttention& a, int position)
      : first(a.first[position]),
        count(a.nodes[position]),
        node(a.node + position * kLanes),
        lane(a.lane + position * kLanes) {}

  int first;            // column
  int count;            // columns
  const int32_t* node;  // by lane, counted from `first`
  const int32_t* lane;  // by node, the first one there
};

// Each lane's own copy of a row's columns.
HWY_INLINE V16 Spread(const Nodes& at, const float* row) {
  row += at.first;
  if (at.count == kLanes) return Load(row);
  if constexpr (kParts == 1) {
    return {{hn::TableLookupLanes(Load(row).part[0], hn::SetTableIndices(D(), at.node))}};
  } else {
    HWY_ALIGN float lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) lanes[i] = row[at.node[i]];
    return Load(lanes);
  }
}

// The other way: all lanes of a column have the same.
HWY_INLINE void Gather(V16 x, const Nodes& at, float* row) {
  row += at.first;
  if (at.count == kLanes) {
    Store(x, row);
  } else if constexpr (kParts == 1) {
    StoreFirst({{hn::TableLookupLanes(x.part[0], hn::SetTableIndices(D(), at.lane))}}, at.count,
               row);
  } else {
    HWY_ALIGN float lanes[kLanes];
    Store(x, lanes);
    for (int i = 0; i < at.count; ++i) row[i] = lanes[at.lane[i]];
  }
}

// Scores of kKeys keys from `key` on, [keys][features][lanes], by the queries in `query`.
template <int kKeys>
HWY_INLINE void StripScores(const StripAttention& a, const float* query, const float* keys, int key,
                            float* scores) {
  const int features = a.features;
  keys += key * features * kLanes;
  V16 sum[kKeys];
  for (int u = 0; u < kKeys; ++u) sum[u] = Zero();
  for (int f = 0; f < features; ++f) {
    const V16 q = Load(query + f * kLanes);
#pragma GCC unroll 4
    for (int u = 0; u < kKeys; ++u) {
      sum[u] = MulAdd(Load(keys + (u * features + f) * kLanes), q, sum[u]);
    }
  }
  for (int u = 0; u < kKeys; ++u) Store(sum[u], scores + (key + u) * kLanes);
}

// As Softmax and SigmoidWeights of attention-inl.h, whose bits these are: keys that a query doesn't
// look at add nothing there.
HWY_INLINE void StripWeights(const StripAttention& a, int keys, float* w) {
  const V16 scale = Set(a.scale);
  if (a.kind == AttentionKind::kSigmoid) {
    for (int u = 0; u < keys; ++u) {
      Store(Sigmoid(MulAdd(Load(w + u * kLanes), scale, Set(a.bias))), w + u * kLanes);
    }
    return;
  }
  V16 largest = Set(-std::numeric_limits<float>::infinity());
  for (int u = 0; u < keys; ++u) largest = Max(largest, Mul(Load(w + u * kLanes), scale));
  V16 sum = Zero();
  for (int u = 0; u < keys; ++u) {
    const V16 e = Exp(Sub(Mul(Load(w + u * kLanes), scale), largest));
    sum = Add(sum, e);
    Store(e, w + u * kLanes);
  }
  const V16 inverse = Div(Set(1.0f), sum);
  for (int u = 0; u < keys; ++u) Store(Mul(Load(w + u * kLanes), inverse), w + u * kLanes);
}

HWY_NOINLINE void ForwardStripAttention(const StripAttention& a) {
  const int features = a.features;
  float* const keys = a.scratch;  // [positions][features][lanes]
  float* const values = keys + a.length * features * kLanes;
  float* const query = values + a.length * features * kLanes;  // [features][lanes]
  float* const w = query + features * kLanes;                  // [keys][lanes]
  for (int t = 0; t < a.length; ++t) {
    const Nodes at(a, t);
    for (int f = 0; f < features; ++f) {
      Store(Spread(at, a.k + f * a.stride), keys + (t * features + f) * kLanes);
      Store(Spread(at, a.v + f * a.stride), values + (t * features + f) * kLanes);
    }
  }
  for (int t = 0; t < a.length; ++t) {
    const Nodes at(a, t);
    const int seen = a.causal ? t + 1 : a.length;
    for (int f = 0; f < features; ++f) Store(Spread(at, a.q + f * a.stride), query + f * kLanes);
    int key = 0;
    for (; seen - key >= 4; key += 4) StripScores<4>(a, query, keys, key, w);
    for (; key < seen; ++key) StripScores<1>(a, query, keys, key, w);
    StripWeights(a, seen, w);
    for (int f = 0; f < features; ++f) {
      V16 sum = Zero();
      for (int u = 0; u < seen; ++u) {
        sum = MulAdd(Load(values + (u * features + f) * kLanes), Load(w + u * kLanes), sum);
      }
      Gather(sum, at, a.context + f * a.stride);
    }
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
