// Between activations, which hold a token's heads side by side, and attention, which takes one head
// at a time.
#ifndef ABLATE_SERVER_ENGINE_MODEL_HEADS_H_
#define ABLATE_SERVER_ENGINE_MODEL_HEADS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace ablate::engine {

// Sizes of a split: G sequences (all rows of all runs), k tensors side by side, H heads.
struct HeadSplit {
  int64_t sequences = 0;
  int64_t parts = 0;
  int64_t heads = 0;
};

// x with G·S rows of k·d features, in any shape → k tensors [G·H, S, d/H]. Differentiable twice.
std::vector<at::Tensor> SplitHeads(const at::Tensor& x, const HeadSplit& split);

// x [G·H, S, d/H] → [G, S, d].
at::Tensor MergeHeads(const at::Tensor& x, const HeadSplit& split);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_HEADS_H_
