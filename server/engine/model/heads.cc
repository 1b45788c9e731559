// The split is a Function of its own: autograd would stack the parts' gradients before it
// rearranges them.
#include "server/engine/model/heads.h"

#include <torch/csrc/autograd/custom_function.h>

namespace ablate::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class HeadSplitter : public torch::autograd::Function<HeadSplitter> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, int64_t sequences,
                               int64_t parts, int64_t heads) {
    const int64_t features = x.size(-1), positions = x.numel() / (sequences * features);
    const int64_t size = features / (parts * heads);
    ctx->saved_data["shape"] = x.sizes();
    ctx->saved_data["sequences"] = sequences;
    const at::Tensor rows = x.view({sequences, positions, parts, heads, size});
    variable_list split;
    for (int64_t part = 0; part < parts; ++part) {
      split.push_back(rows.select(2, part)  // [G, S, H, d/H]
                          .transpose(1, 2)  // [G, H, S, d/H]
                          .reshape({sequences * heads, positions, size}));
    }
    return split;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const std::vector<int64_t> shape = ctx->saved_data["shape"].toIntVector();
    const int64_t sequences = ctx->saved_data["sequences"].toInt();
    const int64_t parts = static_cast<int64_t>(gradients.size());
    const int64_t heads = gradients[0].size(0) / sequences, positions = gradients[0].size(1);
    const int64_t size = gradients[0].size(2);
    if (at::GradMode::is_enabled()) {
      const at::Tensor stacked =
          at::stack(gradients).view({parts, sequences, heads, positions, size});
      return {stacked.permute({1, 3, 0, 2, 4}).reshape(shape), {}, {}, {}};
    }
    at::Tensor dx = at::empty(shape, gradients[0].options());
    const at::Tensor to = dx.view({sequences, positions, parts, heads, size});
    for (int64_t part = 0; part < parts; ++part) {
      to.select(2, part).copy_(gradients[part]
                                   .view({sequences, heads, positions, size})
                                   .transpose(1, 2));  // [G, S, H, d/H]
    }
    return {dx, {}, {}, {}};
  }
};

}  // namespace

std::vector<at::Tensor> SplitHeads(const at::Tensor& x, const HeadSplit& split) {
  return HeadSplitter::apply(x.contiguous(), split.sequences, split.parts, split.heads);
}

at::Tensor MergeHeads(const at::Tensor& x, const HeadSplit& split) {
  return x
      .view({split.sequences, split.heads, x.size(1), x.size(2)})  // [G, H, S, d/H]
      .transpose(1, 2)                                             // [G, S, H, d/H]
      .reshape({split.sequences, x.size(1), split.heads * x.size(2)});
}

}  // namespace ablate::engine
