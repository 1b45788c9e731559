// Computes matrix products in register tiles, and the transposition that a product over columns
// needs. Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_GEMM_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_GEMM_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "server/engine/native/blocked_gemm-inl.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// The widest tile, in vectors of columns, and the rows of each width: as many sums as fit in
// registers together with a row of B and one element of A. AVX-512 has 32 registers; the others
// have 16 narrower ones.
constexpr int kWidest = kParts == 1 ? 4 : 1;

constexpr int TileRows(int vectors) {
  if (kParts > 1) return 6;
  return vectors == 4 ? 6 : vectors == 3 ? 8 : vectors == 2 ? 12 : 16;
}

// Element r of a column of A. Four rows share a pointer, because sixteen pointers or multiples of a
// stride exceed the registers.
template <int kRows>
struct ColumnOfA {
  ColumnOfA(const Gemm& g, int i) {
    for (int q = 0; q < kQuads; ++q) quad[q] = g.a + (i + 4 * q) * g.a_row;
  }
  HWY_INLINE float operator()(int r, ptrdiff_t row, ptrdiff_t twice, ptrdiff_t thrice) const {
    const float* const from = quad[r / 4];
    return r % 4 == 0 ? *from : from[r % 4 == 1 ? row : r % 4 == 2 ? twice : thrice];
  }
  HWY_INLINE void Advance(ptrdiff_t by) {
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) quad[q] += by;
  }

  static constexpr int kQuads = (kRows + 3) / 4;
  const float* quad[kQuads];
};

// How a tile ends: kWhole if all of its columns are written.
template <bool kBias, bool kAccumulate, bool kWhole>
struct Ending {};

// Computes rows i… and columns j… of C. Each element of A is broadcast and multiplied by a row of
// B. Nothing is transposed or packed, and every sum stays in its register until complete.
template <int kRows, int kVectors, bool kBias, bool kAccumulate, bool kWhole>
HWY_INLINE void GemmTile(const Gemm& g, int i, int j, Ending<kBias, kAccumulate, kWhole>) {
  V16 sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Zero();
  }
  ColumnOfA<kRows> a(g, i);
  const ptrdiff_t a_row = g.a_row, twice = 2 * a_row, thrice = 3 * a_row, a_k = g.a_k;
  const float* b = g.b + j;
#pragma GCC unroll 1
  for (int k = 0; k < g.depth; ++k, b += g.b_row) {
    V16 row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = Load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V16 element = Set(a(r, a_row, twice, thrice));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = MulAdd(element, row[v], sum[r][v]);
    }
    a.Advance(a_k);
  }
  // Add the start value last: a large one would round away the products added after it.
  const ptrdiff_t c_row = g.c_row;
  float* c = g.c + i * c_row + j;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r, c += c_row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + v * kLanes;
      if constexpr (kBias) sum[r][v] = Add(sum[r][v], Set(g.bias[i + r]));
      if constexpr (kAccumulate) sum[r][v] = Add(Load(to), sum[r][v]);
      if constexpr (kWhole) {
        Store(sum[r][v], to);
      } else {
        StoreFirst(sum[r][v], std::min(g.columns - j - v * kLanes, kLanes), to);
      }
    }
  }
}

// Computes rows from i on: whole tiles first, then smaller ones.
template <int kRows, int kVectors, typename End>
HWY_INLINE void GemmRows(const Gemm& g, int i, int j, End end) {
  for (; g.rows - i >= kRows; i += kRows) GemmTile<kRows, kVectors>(g, i, j, end);
  if constexpr (kRows > 1) {
    constexpr int kFewer = kRows > 8 ? 8 : kRows > 4 ? 4 : kRows > 2 ? 2 : 1;
    if (i < g.rows) GemmRows<kFewer, kVectors>(g, i, j, end);
  }
}

// Computes columns from j on: as many tiles of a width as fit, then narrower ones, and last the
// vector that is written in part.
template <int kVectors, bool kBias, bool kAccumulate>
HWY_INLINE void GemmColumns(const Gemm& g, int j) {
  constexpr int kWidth = kVectors * kLanes;
  for (; g.columns - j >= kWidth; j += kWidth) {
    GemmRows<TileRows(kVectors), kVectors>(g, 0, j, Ending<kBias, kAccumulate, true>());
  }
  if constexpr (kVectors > 1) {
    if (j < g.columns) GemmColumns<kVectors - 1, kBias, kAccumulate>(g, j);
  } else if (j < g.columns) {
    GemmRows<TileRows(1), 1>(g, 0, j, Ending<kBias, kAccumulate, false>());
  }
}

HWY_NOINLINE void MultiplyMatrices(const Gemm& g) {
  if (WantsBlocks(g)) return MultiplyInBlocks(g);
  if (g.bias == nullptr) {
    g.accumulate ? GemmColumns<kWidest, false, true>(g, 0)
                 : GemmColumns<kWidest, false, false>(g, 0);
  } else {
    g.accumulate ? GemmColumns<kWidest, true, true>(g, 0) : GemmColumns<kWidest, true, false>(g, 0);
  }
}

// Transposes four rows of four columns, with shuffles that every target has.
HWY_INLINE void TransposeQuad(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row) {
  const hn::FixedTag<float, 4> quad;
  const hn::RepartitionToWide<decltype(quad)> pairs;
  const auto row0 = hn::LoadU(quad, from), row1 = hn::LoadU(quad, from + from_row);
  const auto row2 = hn::LoadU(quad, from + 2 * from_row),
             row3 = hn::LoadU(quad, from + 3 * from_row);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(quad, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(quad, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(quad, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(quad, row2, row3));
  hn::StoreU(hn::BitCast(quad, hn::InterleaveLower(pairs, low01, low23)), quad, to);
  hn::StoreU(hn::BitCast(quad, hn::InterleaveUpper(pairs, low01, low23)), quad, to + to_row);
  hn::StoreU(hn::BitCast(quad, hn::InterleaveLower(pairs, high01, high23)), quad, to + 2 * to_row);
  hn::StoreU(hn::BitCast(quad, hn::InterleaveUpper(pairs, high01, high23)), quad, to + 3 * to_row);
}

// Transposes sixteen rows of sixteen columns in vectors of sixteen. First within blocks of four
// lanes, as above, which leaves block k of vector 4i + j with column 4k + j of rows 4i to 4i + 3;
// then the blocks of the four vectors of each j. Takes less than half the instructions of sixteen
// quads.
template <typename Tag>
HWY_INLINE void TransposeSixteen(Tag d, const float* from, ptrdiff_t from_row, float* to,
                                 ptrdiff_t to_row) {
  const hn::RepartitionToWide<Tag> pairs;
  hn::Vec<Tag> x[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const auto row0 = hn::LoadU(d, from + i * from_row),
               row1 = hn::LoadU(d, from + (i + 1) * from_row);
    const auto row2 = hn::LoadU(d, from + (i + 2) * from_row);
    const auto row3 = hn::LoadU(d, from + (i + 3) * from_row);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
    x[i] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
    x[i + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
    x[i + 2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
    x[i + 3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const auto low02 = hn::ConcatLowerLower(d, x[8 + j], x[j]);
    const auto low13 = hn::ConcatLowerLower(d, x[12 + j], x[4 + j]);
    const auto high02 = hn::ConcatUpperUpper(d, x[8 + j], x[j]);
    const auto high13 = hn::ConcatUpperUpper(d, x[12 + j], x[4 + j]);
    hn::StoreU(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02), d, to + j * to_row);
    hn::StoreU(hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02)), d, to + (4 + j) * to_row);
    hn::StoreU(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02), d, to + (8 + j) * to_row);
    hn::StoreU(hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02)), d,
               to + (12 + j) * to_row);
  }
}

// Rows and columns of the largest square that a target transposes at once.
constexpr int kSquare = kParts == 1 ? 16 : 4;

HWY_INLINE void TransposeSquare(const float* from, ptrdiff_t from_row, float* to,
                                ptrdiff_t to_row) {
  if constexpr (kSquare == 16) {
    TransposeSixteen(D(), from, from_row, to, to_row);
  } else {
    TransposeQuad(from, from_row, to, to_row);
  }
}

HWY_NOINLINE void Transpose(const float* from, ptrdiff_t from_row, int rows, int columns, float* to,
                            ptrdiff_t to_row) {
  const int whole_rows = rows / kSquare * kSquare, whole_columns = columns / kSquare * kSquare;
  for (int c = 0; c < whole_columns; c += kSquare) {
    for (int r = 0; r < whole_rows; r += kSquare) {
      TransposeSquare(from + r * from_row + c, from_row, to + c * to_row + r, to_row);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      to[c * to_row + r] = from[r * from_row + c];
    }
  }
}

HWY_NOINLINE void AddRowSums(const float* x, ptrdiff_t row, int rows, int columns, float* to) {
  for (int r = 0; r < rows; ++r, x += row) {
    V16 sum = Load(x);
    for (int c = kLanes; c < columns; c += kLanes) sum = Add(sum, Load(x + c));
    to[r] += Sum(sum);
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_GEMM_INL_H_
