// Computes self-attention of one head over sixteen short sequences side by side, one SIMD lane
// each, so that no lane is idle if sequences are shorter than sixteen. A vector of weights belongs
// to one query and one key of each sequence. Its one-position form serves growing sequences.
// Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
#endif

#include <cstdint>

#include "server/engine/native/attention_weights-inl.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// Maps lanes to columns at one position: sequences with equal beginnings share columns.
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

// Copies each lane's column of a row to the lane.
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

// The inverse: all lanes of a column hold the same value.
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

// Computes the scores of kKeys keys from `key` on.
template <int kKeys>
HWY_INLINE void LaneScores(const LaneAttention& a, int key) {
  const int features = a.features;
  const float* const keys = a.keys + key * features * kLanes;
  V16 sum[kKeys];
  for (int u = 0; u < kKeys; ++u) sum[u] = Zero();
  for (int f = 0; f < features; ++f) {
    const V16 q = Load(a.q + f * a.stride);
#pragma GCC unroll 4
    for (int u = 0; u < kKeys; ++u) {
      sum[u] = MulAdd(Load(keys + (u * features + f) * kLanes), q, sum[u]);
    }
  }
  for (int u = 0; u < kKeys; ++u) Store(sum[u], a.weights + (key + u) * kLanes);
}

// Computes kFeatures features of the context from `feature` on.
template <int kFeatures>
HWY_INLINE void LaneContext(const LaneAttention& a, int feature) {
  V16 sum[kFeatures];
  for (int f = 0; f < kFeatures; ++f) sum[f] = Zero();
  const float* value = a.values + feature * kLanes;
  for (int u = 0; u < a.length; ++u, value += a.features * kLanes) {
    const V16 w = Load(a.weights + u * kLanes);
#pragma GCC unroll 4
    for (int f = 0; f < kFeatures; ++f) sum[f] = MulAdd(Load(value + f * kLanes), w, sum[f]);
  }
  for (int f = 0; f < kFeatures; ++f) Store(sum[f], a.context + (feature + f) * a.stride);
}

HWY_INLINE void AttendByLane(const LaneAttention& a) {
  int key = 0;
  for (; a.length - key >= 4; key += 4) LaneScores<4>(a, key);
  for (; key < a.length; ++key) LaneScores<1>(a, key);
  FormWeights(a, StoredKeys{a.weights, kLanes, a.length},
              [](int, V16 x, V16) HWY_ATTR { return x; });
  int feature = 0;
  for (; a.features - feature >= 4; feature += 4) LaneContext<4>(a, feature);
  for (; feature < a.features; ++feature) LaneContext<1>(a, feature);
}

HWY_NOINLINE void ForwardLaneAttention(const LaneAttention& a) { AttendByLane(a); }

HWY_NOINLINE void ForwardStripAttention(const StripAttention& a) {
  const int features = a.features;
  float* const keys = a.scratch;  // [positions][features][lanes]
  float* const values = keys + a.length * features * kLanes;
  float* const query =
      values + a.length * features * kLanes;   // [features][lanes], then the context
  float* const w = query + features * kLanes;  // [keys][lanes]
  for (int t = 0; t < a.length; ++t) {
    const Nodes at(a, t);
    for (int f = 0; f < features; ++f) {
      Store(Spread(at, a.k + f * a.stride), keys + (t * features + f) * kLanes);
      Store(Spread(at, a.v + f * a.stride), values + (t * features + f) * kLanes);
    }
  }
  for (int t = 0; t < a.length; ++t) {
    const Nodes at(a, t);
    for (int f = 0; f < features; ++f) Store(Spread(at, a.q + f * a.stride), query + f * kLanes);
    AttentionHead here = a;
    here.length = a.causal ? t + 1 : a.length;
    here.stride = kLanes;
    AttendByLane({here, query, keys, values, w, query});
    for (int f = 0; f < features; ++f) {
      Gather(Load(query + f * kLanes), at, a.context + f * a.stride);
    }
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_STRIP_ATTENTION_INL_H_
