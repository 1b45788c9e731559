// Computes self-attention of one head over one sequence. Weights are [keys][queries], so that a
// vector holds the queries of one key, a softmax runs down its columns, and the forward pass
// transposes nothing. Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "server/engine/native/attention_weights-inl.h"
#include "server/engine/native/gemm-inl.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// Returns a bound on the keys that the vector of queries from `query` on sees.
HWY_INLINE int SeenKeys(const Attention& a, int query) {
  return a.causal ? std::min(query + kLanes, a.length) : a.length;
}

// Returns the first vector of queries that sees a key.
HWY_INLINE int FirstQuery(const Attention& a, int key) {
  return a.causal ? key / kLanes * kLanes : 0;
}

// Returns which of the queries from `query` on see `key`.
HWY_INLINE M16 Looks(const Attention& a, int query, int key) {
  const V16 queries = Iota(static_cast<float>(query));
  const M16 real = Gt(Set(static_cast<float>(a.length)), queries);
  return a.causal ? And(real, Gt(queries, Set(static_cast<float>(key) - 0.5f))) : real;
}

// Mask of FormWeights for the queries from `query` on.
struct SeenFrom {
  HWY_INLINE V16 operator()(int key, V16 x, V16 otherwise) const {
    return IfThenElse(Looks(a, query, key), x, otherwise);
  }

  const Attention& a;
  int query;
};

// Computes products of columns of x and y over features, [keys][queries], for pairs whose query
// sees the key.
HWY_INLINE void KeyQueryProducts(const Attention& a, const float* keys, const float* queries,
                                 float* to) {
  const int padded = RoundUp(a.length);
  const int step = a.causal ? kLanes : a.length;
  for (int key = 0; key < a.length; key += step) {
    const int first = FirstQuery(a, key);
    Gemm g;
    g.rows = std::min(step, a.length - key);
    g.columns = padded - first;
    g.depth = a.features;
    g.a = keys + key;
    g.a_row = 1;
    g.a_k = a.stride;
    g.b = queries + first;
    g.b_row = a.stride;
    g.c = to + key * padded + first;
    g.c_row = padded;
    MultiplyMatrices(g);
  }
}

// to[f][query] = Σ_key of[f][key]·w[key][query].
HWY_INLINE void SumOverKeys(const Attention& a, const float* of, const float* w, float* to) {
  const int padded = RoundUp(a.length);
  const int step = a.causal ? kLanes : padded;
  for (int query = 0; query < a.length; query += step) {
    Gemm g;
    g.rows = a.features;
    g.columns = std::min(step, a.length - query);
    g.depth = a.causal ? SeenKeys(a, query) : a.length;
    g.a = of;
    g.a_row = a.stride;
    g.b = w + query;
    g.b_row = padded;
    g.c = to + query;
    g.c_row = a.stride;
    MultiplyMatrices(g);
  }
}

// to[f][key] = Σ_query of[f][query]·w[query][key], where w are transposed weights.
HWY_INLINE void SumOverQueries(const Attention& a, const float* of, const float* w, float* to) {
  const int padded = RoundUp(a.length);
  const int step = a.causal ? kLanes : padded;
  for (int key = 0; key < a.length; key += step) {
    const int first = FirstQuery(a, key);
    Gemm g;
    g.rows = a.features;
    g.columns = std::min(step, a.length - key);
    g.depth = a.length - first;
    g.a = of + first;
    g.a_row = a.stride;
    g.b = w + first * padded + key;
    g.b_row = padded;
    g.c = to + key;
    g.c_row = a.stride;
    MultiplyMatrices(g);
  }
}

HWY_INLINE void Mask(const Attention& a, const float* from, float* to) {
  const int padded = RoundUp(a.length);
  for (int query = 0; query < a.length; query += kLanes) {
    for (int key = 0; key < SeenKeys(a, query); ++key) {
      const int at = key * padded + query;
      Store(Mul(Load(from + at), Load(a.mask + at)), to + at);
    }
  }
}

// The same for a sequence of kLength positions, at most the lanes of a vector. Its weights are
// kLength vectors that stay in registers; the loops above would store and load them between steps.
template <int kLength>
HWY_INLINE void ShortProducts(const Attention& a, const float* keys, const float* queries,
                              V16 (&to)[kLength]) {
#pragma GCC unroll 16
  for (int key = 0; key < kLength; ++key) to[key] = Zero();
#pragma GCC unroll 1
  for (int f = 0; f < a.features; ++f) {
    const V16 q = Load(queries + f * a.stride);
    const float* const k = keys + f * a.stride;
#pragma GCC unroll 16
    for (int key = 0; key < kLength; ++key) to[key] = MulAdd(Set(k[key]), q, to[key]);
  }
}

// to[f] = Σ_t of[f][t]·w[t].
template <int kLength>
HWY_INLINE void SumShort(const Attention& a, const float* of, const V16 (&w)[kLength], float* to) {
#pragma GCC unroll 1
  for (int f = 0; f < a.features; ++f, of += a.stride, to += a.stride) {
    V16 sum = Zero();
#pragma GCC unroll 16
    for (int t = 0; t < kLength; ++t) sum = MulAdd(Set(of[t]), w[t], sum);
    StoreFirst(sum, kLength, to);
  }
}

template <int kLength>
HWY_NOINLINE void ShortForward(const Attention& a) {
  V16 w[kLength];
  ShortProducts<kLength>(a, a.k, a.q, w);
  FormWeights(a, HeldKeys<kLength>{w}, SeenFrom{a, 0});
#pragma GCC unroll 16
  for (int key = 0; key < kLength; ++key) {
    Store(w[key], a.weights + key * kLanes);
    if (a.mask == nullptr) continue;
    w[key] = Mul(w[key], Load(a.mask + key * kLanes));
    Store(w[key], a.dropped + key * kLanes);
  }
  SumShort<kLength>(a, a.v, w, a.context);
}

// The same with rows of weights in memory.
template <int kLength>
HWY_INLINE void SumShort(const Attention& a, const float* of, const float* w, float* to) {
  V16 rows[kLength];
#pragma GCC unroll 16
  for (int t = 0; t < kLength; ++t) rows[t] = Load(w + t * kLanes);
  SumShort<kLength>(a, of, rows, to);
}

template <int kLength>
HWY_NOINLINE void ShortBackward(const AttentionBack& b) {
  const Attention& a = b.forward;
  float* const ds = b.scratch;                            // [keys][queries]
  float* const transposed = b.scratch + kLanes * kLanes;  // [queries][keys]
  V16 d[kLength];
  ShortProducts<kLength>(a, a.v, b.dcontext, d);
  const bool softmax = a.kind == AttentionKind::kSoftmax;
  V16 mean = Zero();
#pragma GCC unroll 16
  for (int key = 0; key < kLength; ++key) {
    if (a.mask != nullptr) d[key] = Mul(d[key], Load(a.mask + key * kLanes));
    if (softmax) mean = MulAdd(Load(a.weights + key * kLanes), d[key], mean);
  }
  const V16 scale = Set(a.scale), one = Set(1.0f);
#pragma GCC unroll 16
  for (int key = 0; key < kLength; ++key) {
    const V16 weight = Load(a.weights + key * kLanes);
    const V16 slope = softmax ? weight : Mul(weight, Sub(one, weight));
    const V16 product = Mul(Mul(slope, scale), Sub(d[key], mean));
    Store(IfThenElseZero(Looks(a, 0, key), product), ds + key * kLanes);
  }
  SumShort<kLength>(a, a.k, ds, b.dq);
  TransposeSquare(ds, kLanes, transposed, kLanes);
  SumShort<kLength>(a, a.q, transposed, b.dk);
  TransposeSquare(a.mask != nullptr ? a.dropped : a.weights, kLanes, transposed, kLanes);
  SumShort<kLength>(a, b.dcontext, transposed, b.dv);
}

// The forward functions by length.
template <int... kLengths>
constexpr std::array<void (*)(const Attention&), sizeof...(kLengths)> ShortForwards(
    std::integer_sequence<int, kLengths...>) {
  return {ShortForward<kLengths + 1>...};
}
template <int... kLengths>
constexpr std::array<void (*)(const AttentionBack&), sizeof...(kLengths)> ShortBackwards(
    std::integer_sequence<int, kLengths...>) {
  return {ShortBackward<kLengths + 1>...};
}

HWY_NOINLINE void AttentionForward(const Attention& a) {
  if constexpr (kParts == 1) {
    constexpr auto kShort = ShortForwards(std::make_integer_sequence<int, kLanes>());
    if (a.length <= kLanes) return kShort[static_cast<size_t>(a.length - 1)](a);
  }
  KeyQueryProducts(a, a.k, a.q, a.weights);
  for (int query = 0; query < a.length; query += kLanes) {
    FormWeights(a, StoredKeys{a.weights + query, RoundUp(a.length), SeenKeys(a, query)},
                SeenFrom{a, query});
  }
  if (a.mask != nullptr) Mask(a, a.weights, a.dropped);
  SumOverKeys(a, a.v, a.mask != nullptr ? a.dropped : a.weights, a.context);
}

// Converts gradients of weights to gradients of the query–key products, for the queries from
// `query` on.
HWY_INLINE void BackThroughWeights(const Attention& a, int query, float* d) {
  const int padded = RoundUp(a.length), keys = SeenKeys(a, query);
  const float* const w = a.weights + query;
  const V16 scale = Set(a.scale);
  V16 mean = Zero();
  if (a.kind == AttentionKind::kSoftmax) {
    for (int key = 0; key < keys; ++key) {
      mean = MulAdd(Load(w + key * padded), Load(d + query + key * padded), mean);
    }
  }
  for (int key = 0; key < keys; ++key) {
    float* const at = d + query + key * padded;
    const V16 weight = Load(w + key * padded);
    const V16 slope =
        a.kind == AttentionKind::kSoftmax ? weight : Mul(weight, Sub(Set(1.0f), weight));
    const V16 ds = Mul(Mul(slope, scale), Sub(Load(at), mean));
    Store(IfThenElseZero(Looks(a, query, key), ds), at);
  }
}

// Transposes [keys][queries] → [queries][keys], for pairs whose query sees the key.
HWY_INLINE void TransposeWeights(const Attention& a, const float* from, float* to) {
  const int padded = RoundUp(a.length);
  for (int query = 0; query < a.length; query += kLanes) {
    const int keys = RoundUp(SeenKeys(a, query));
    Transpose(from + query, padded, keys, kLanes, to + query * padded, padded);
  }
}

HWY_NOINLINE void AttentionBackward(const AttentionBack& b) {
  const Attention& a = b.forward;
  if constexpr (kParts == 1) {
    constexpr auto kShort = ShortBackwards(std::make_integer_sequence<int, kLanes>());
    if (a.length <= kLanes) return kShort[static_cast<size_t>(a.length - 1)](b);
  }
  const int padded = RoundUp(a.length);
  float* const d = b.scratch;                             // [keys][queries]
  float* const transposed = b.scratch + padded * padded;  // [queries][keys]
  TransposeWeights(a, a.mask != nullptr ? a.dropped : a.weights, transposed);
  SumOverQueries(a, b.dcontext, transposed, b.dv);
  KeyQueryProducts(a, a.v, b.dcontext, d);
  if (a.mask != nullptr) Mask(a, d, d);
  for (int query = 0; query < a.length; query += kLanes) BackThroughWeights(a, query, d);
  SumOverKeys(a, a.k, d, b.dq);
  TransposeWeights(a, d, transposed);
  SumOverQueries(a, a.q, transposed, b.dk);
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_INL_H_
