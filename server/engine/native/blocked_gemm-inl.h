// Computes large matrix products in blocks that fit in the caches. The bits are those of register
// tiles over the whole depth (gemm-inl.h): a sum that leaves its register keeps its bits, and goes
// on in the order of k. Included once per target.
//
// Without blocks, a tile reads a column panel of B whose rows are far apart: of 512 columns, each
// row of a panel is on another page, and all panels compete for a part of the L2 cache. The same
// holds for A where its rows are columns of a weight (a_k isn't 1).
#if defined(ABLATE_SERVER_ENGINE_NATIVE_BLOCKED_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_BLOCKED_GEMM_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_BLOCKED_GEMM_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_BLOCKED_GEMM_INL_H_
#endif

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// A tile has six rows and as many vectors as fit in registers.
constexpr int kBlockedRows = 6;
constexpr int kBlockedVectors = kParts == 1 ? 4 : 1;
constexpr int kPanelColumns = kBlockedVectors * kLanes;
// Rows and depth of a block of A, 96 KB; the depth of a panel of B takes as much at most. Both fit
// in an L2 cache of 256 KB.
constexpr int kRowsTogether = 16 * kBlockedRows;
constexpr int kDepthTogether = 256;

// Returns true if blocks pay: a panel of B is large and has its rows far apart, or A has, and there
// is enough to do.
inline bool WantsBlocks(const Gemm& g) {
  constexpr int64_t kLargeB = 1 << 19, kLargeProduct = 1 << 25;
  const bool large_b = g.b_row > kPanelColumns && int64_t{g.depth} * g.columns > kLargeB;
  const bool large_a = g.a_k != 1 && int64_t{g.depth} * g.columns * g.rows > kLargeProduct;
  return g.columns % kLanes == 0 && g.rows >= kRowsTogether && (large_a || large_b);
}

// Copies B to panels of kPanelColumns columns (the last one has fewer), each [depth][columns].
inline void PackPanels(const Gemm& g, float* to) {
  for (int j = 0; j < g.columns; j += kPanelColumns) {
    const int width = std::min(kPanelColumns, g.columns - j);
    const float* from = g.b + j;
    for (int k = 0; k < g.depth; ++k, from += g.b_row, to += width) {
      for (int v = 0; v < width; v += kLanes) Store(Load(from + v), to + v);
    }
  }
}

// Copies a tile of A to [depth][kBlockedRows]. Rows after `rows` are 0.
inline void PackTile(const float* from, ptrdiff_t a_row, ptrdiff_t a_k, int rows, int depth,
                     float* to) {
  if (rows < kBlockedRows) std::fill_n(to, ptrdiff_t{kBlockedRows} * depth, 0.0f);
  for (int d = 0; d < depth; ++d, from += a_k, to += kBlockedRows) {
    if (rows == kBlockedRows && a_row == 1) {
      std::copy_n(from, kBlockedRows, to);
    } else if (rows == kBlockedRows) {
#pragma GCC unroll 6
      for (int r = 0; r < kBlockedRows; ++r) to[r] = from[r * a_row];
    } else {
      for (int r = 0; r < rows; ++r) to[r] = from[r * a_row];
    }
  }
}

// Copies a block of A, tile by tile.
inline void PackRows(const Gemm& g, int i, int rows, int k, int depth, float* to) {
  for (int first = 0; first < rows; first += kBlockedRows, to += ptrdiff_t{kBlockedRows} * depth) {
    PackTile(g.a + (i + first) * g.a_row + k * g.a_k, g.a_row, g.a_k,
             std::min(kBlockedRows, rows - first), depth, to);
  }
}

// sums [kBlockedRows][kVectors·kLanes] += a·b, given a tile of A and a panel of B.
template <int kVectors>
HWY_INLINE void AddBlock(const float* a, const float* b, int depth, float* sums) {
  constexpr int kWidth = kVectors * kLanes;
  V16 sum[kBlockedRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kBlockedRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Load(sums + r * kWidth + v * kLanes);
  }
#pragma GCC unroll 1
  for (int k = 0; k < depth; ++k, a += kBlockedRows, b += kWidth) {
    V16 row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = Load(b + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kBlockedRows; ++r) {
      const V16 element = Set(a[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = MulAdd(element, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kBlockedRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Store(sum[r][v], sums + r * kWidth + v * kLanes);
  }
}

// Adds a block's tiles for one panel; `sums` has kBlockedRows rows a tile.
inline void AddPanel(const float* a, const float* b, int rows, int width, int depth, float* sums) {
  for (int first = 0; first < rows; first += kBlockedRows) {
    if (width == kPanelColumns) {
      AddBlock<kBlockedVectors>(a, b, depth, sums);
    } else if (width == 3 * kLanes) {
      AddBlock<3>(a, b, depth, sums);
    } else if (width == 2 * kLanes) {
      AddBlock<2>(a, b, depth, sums);
    } else {
      AddBlock<1>(a, b, depth, sums);
    }
    a += ptrdiff_t{kBlockedRows} * depth;
    sums += kBlockedRows * width;
  }
}

// Writes the complete sums of a panel. The start values are added last, as by GemmTile.
inline void WritePanel(const Gemm& g, int i, int rows, int j, int width, const float* sums) {
  for (int r = 0; r < rows; ++r, sums += width) {
    float* const c = g.c + (i + r) * g.c_row + j;
    for (int v = 0; v < width; v += kLanes) {
      V16 sum = Load(sums + v);
      if (g.bias != nullptr) sum = Add(sum, Set(g.bias[i + r]));
      if (g.accumulate) sum = Add(Load(c + v), sum);
      Store(sum, c + v);
    }
  }
}

HWY_NOINLINE void MultiplyInBlocks(const Gemm& g) {
  const auto panels = hwy::AllocateAligned<float>(static_cast<size_t>(g.depth) * g.columns);
  const auto block =
      hwy::AllocateAligned<float>(static_cast<size_t>(kRowsTogether) * kDepthTogether);
  const auto sums = hwy::AllocateAligned<float>(static_cast<size_t>(kRowsTogether) * g.columns);
  PackPanels(g, panels.get());
  for (int i = 0; i < g.rows; i += kRowsTogether) {
    const int rows = std::min(kRowsTogether, g.rows - i);
    std::fill_n(sums.get(), ptrdiff_t{kRowsTogether} * g.columns, 0.0f);
    for (int k = 0; k < g.depth; k += kDepthTogether) {
      const int depth = std::min(kDepthTogether, g.depth - k);
      PackRows(g, i, rows, k, depth, block.get());
      for (int j = 0; j < g.columns; j += kPanelColumns) {
        const int width = std::min(kPanelColumns, g.columns - j);
        const float* const panel = panels.get() + ptrdiff_t{j} * g.depth + ptrdiff_t{k} * width;
        AddPanel(block.get(), panel, rows, width, depth, sums.get() + ptrdiff_t{j} * kRowsTogether);
      }
    }
    for (int j = 0; j < g.columns; j += kPanelColumns) {
      WritePanel(g, i, rows, j, std::min(kPanelColumns, g.columns - j),
                 sums.get() + ptrdiff_t{j} * kRowsTogether);
    }
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_BLOCKED_GEMM_INL_H_
