// Defines the sums over rows of attention weights that describe a block, and computes them by
// tensor operations, for devices. attention.cc computes them on the cores.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_ATTENTION_SUMS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_ATTENTION_SUMS_H_

#include <ATen/ATen.h>

#include <cstdint>

namespace ablate::engine {

// Sums over the rows of a head.
enum HeadSum { kRowEntropy, kLargestWeight, kFirstToken, kRowMass, kHeadSums };
// Sums over the rows of a pair of heads.
enum PairSum { kDistance, kDistanceWithoutFirst, kRowsWithoutFirst, kPairSums };

// Weights of which rows are compared. Row i of a map has Keys(i) keys that it may see.
struct CountedRows {
  int64_t first = 0;  // earlier rows have no choice
  int64_t length = 0;
  bool causal = true;

  int64_t Keys(int64_t row) const { return causal ? row + 1 : length; }
};

// Sums of one block, float64, the host's.
struct BlockAttention {
  at::Tensor heads;  // [H, kHeadSums]
  at::Tensor pairs;  // [H, H, kPairSums], of two heads where the first comes first
};

// Returns the sums of weights [B, H, T, T] on a device; those of pairs are 0 unless rows are
// normalised. Keys that a row may not see have weight 0.
BlockAttention BlockSumsOnDevice(const at::Tensor& weights, const CountedRows& rows,
                                 bool normalised);

// Returns the sum over the counted rows of maps [..., T, T], float64 on a device: their entropies
// divided by those of uniform weights.
double SumOfEvennessOnDevice(const at::Tensor& maps, const CountedRows& rows);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_ATTENTION_SUMS_H_
