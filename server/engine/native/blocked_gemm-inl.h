// Computes large matrix products in blocks that fit in the caches. The bits are those of register
// tiles over the whole depth (gemm-inl.h): a sum that leaves its register keeps its bits, and goes
// on in the order of k. Included once per target.
//
// Without blocks, a tile reads a column panel of B whose rows are far apart: of 512 columns, each
// row of a panel is on another page, and all panels compete for a part of the L2 cache. The same
// holds for A where its rows are columns of a weight (a_k isn't 1); other rows are read in place.
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
// Columns of B that are copied at a time: with more, B and the sums leave an L2 cache of 1 MB.
constexpr int kColumnsTogether = 256;

// Returns true if blocks pay for their copies, as measured with AVX2 and AVX-512.
inline bool WantsBlocks(const Gemm& g) {
  if (g.columns % kLanes != 0 || g.rows < kRowsTogether) return false;
  const int64_t b_size = int64_t{g.depth} * g.columns;
  if (g.a_k == 1) return g.columns >= 64 && (g.depth >= 256 || b_size >= 1 << 17);
  return b_size * g.rows > 1 << 25 || (g.columns >= 128 && g.depth >= 256);
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

// Copies a tile of A to [depth][kBlockedRows].
inline void PackTile(const float* from, ptrdiff_t a_row, ptrdiff_t a_k, int rows, int depth,
                     float* to) {
  for (int d = 0; d < depth; ++d, from += a_k, to += kBlockedRows) {
    if (rows == kBlockedRows && a_row == 1) {
      std::copy_n(from, kBlockedRows, to);
    } else {
      for (int r = 0; r < rows; ++r) to[r] = from[r * a_row];
    }
  }
}

// A block of A: element (r, k) of tile t is at first[t·tile + r·row + k·column].
struct RowBlock {
  int rows = 0;
  int depth = 0;
  const float* first = nullptr;
  ptrdiff_t tile = 0;
  ptrdiff_t row = 0;
  ptrdiff_t column = 0;
};

// Returns the block of A at (i, k): in place if its rows are contiguous, else a copy in `to`
// [kRowsTogether·kDepthTogether].
inline RowBlock BlockOfRows(const Gemm& g, int i, int k, float* to) {
  const int rows = std::min(kRowsTogether, g.rows - i);
  const int depth = std::min(kDepthTogether, g.depth - k);
  const float* const a = g.a + i * g.a_row + k * g.a_k;
  if (g.a_k == 1) return {rows, depth, a, kBlockedRows * g.a_row, g.a_row, 1};
  const ptrdiff_t tile = ptrdiff_t{kBlockedRows} * depth;
  for (int first = 0; first < rows; first += kBlockedRows) {
    PackTile(a + first * g.a_row, g.a_row, g.a_k, std::min(kBlockedRows, rows - first), depth,
             to + first * depth);
  }
  return {rows, depth, to, tile, 1, kBlockedRows};
}

// sums [kBlockedRows][kVectors·kLanes] += a·b, given the rows of a tile of A and a panel of B.
template <int kVectors>
HWY_INLINE void AddBlock(const float* const (&a)[kBlockedRows], ptrdiff_t a_k, const float* b,
                         int depth, float* sums) {
  constexpr int kWidth = kVectors * kLanes;
  V16 sum[kBlockedRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kBlockedRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Load(sums + r * kWidth + v * kLanes);
  }
#pragma GCC unroll 1
  for (ptrdiff_t k = 0, at = 0; k < depth; ++k, at += a_k, b += kWidth) {
    V16 row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = Load(b + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kBlockedRows; ++r) {
      const V16 element = Set(a[r][at]);
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

// Adds a block's tiles for one panel; `sums` has kBlockedRows rows a tile. Those after the last row
// of A repeat it, and WritePanel leaves them out.
inline void AddPanel(const RowBlock& block, const float* b, int width, float* sums) {
  for (int first = 0; first < block.rows; first += kBlockedRows, sums += kBlockedRows * width) {
    const float* const tile = block.first + first / kBlockedRows * block.tile;
    const float* a[kBlockedRows];
    for (int r = 0; r < kBlockedRows; ++r) {
      a[r] = tile + std::min(r, block.rows - first - 1) * block.row;
    }
    if (width == kPanelColumns) {
      AddBlock<kBlockedVectors>(a, block.column, b, block.depth, sums);
    } else if (width == 3 * kLanes) {
      AddBlock<3>(a, block.column, b, block.depth, sums);
    } else if (width == 2 * kLanes) {
      AddBlock<2>(a, block.column, b, block.depth, sums);
    } else {
      AddBlock<1>(a, block.column, b, block.depth, sums);
    }
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

// Multiplies by all columns of B at once.
inline void MultiplyColumns(const Gemm& g, float* panels, float* block, float* sums) {
  PackPanels(g, panels);
  for (int i = 0; i < g.rows; i += kRowsTogether) {
    const int rows = std::min(kRowsTogether, g.rows - i);
    std::fill_n(sums, ptrdiff_t{kRowsTogether} * g.columns, 0.0f);
    for (int k = 0; k < g.depth; k += kDepthTogether) {
      const RowBlock a = BlockOfRows(g, i, k, block);
      for (int j = 0; j < g.columns; j += kPanelColumns) {
        const int width = std::min(kPanelColumns, g.columns - j);
        const float* const panel = panels + ptrdiff_t{j} * g.depth + ptrdiff_t{k} * width;
        AddPanel(a, panel, width, sums + ptrdiff_t{j} * kRowsTogether);
      }
    }
    for (int j = 0; j < g.columns; j += kPanelColumns) {
      WritePanel(g, i, rows, j, std::min(kPanelColumns, g.columns - j),
                 sums + ptrdiff_t{j} * kRowsTogether);
    }
  }
}

HWY_NOINLINE void MultiplyInBlocks(const Gemm& g) {
  const auto columns = static_cast<size_t>(std::min(g.columns, kColumnsTogether));
  const auto panels = hwy::AllocateAligned<float>(static_cast<size_t>(g.depth) * columns);
  const auto block =
      hwy::AllocateAligned<float>(static_cast<size_t>(kRowsTogether) * kDepthTogether);
  const auto sums = hwy::AllocateAligned<float>(static_cast<size_t>(kRowsTogether) * columns);
  for (int j = 0; j < g.columns; j += kColumnsTogether) {
    Gemm part = g;
    part.columns = std::min(kColumnsTogether, g.columns - j);
    part.b += j;
    part.c += j;
    MultiplyColumns(part, panels.get(), block.get(), sums.get());
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_BLOCKED_GEMM_INL_H_
