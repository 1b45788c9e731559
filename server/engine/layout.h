// Names, shapes and offsets of a model's parameters in its flat buffer, and what stands beside it.
// Torch-free; the server links it too.
#ifndef ABLATE_SERVER_ENGINE_LAYOUT_H_
#define ABLATE_SERVER_ENGINE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"

namespace ablate::engine {

struct ParameterInfo {
  std::string name;            // e.g. "block.3.attention.qkv.weight"
  std::vector<int64_t> shape;  // without the leading run dimension; linears are [out, in]
  int64_t offset = 0;          // first element in the flat buffer of one run
  int64_t size = 0;            // elements
};

struct ParameterLayout {
  std::vector<ParameterInfo> parameters;  // in buffer order
  int64_t size = 0;                       // elements of one run, P
};

// The parameters that `config` has, in this order: token_embedding.weight [V,d],
// position_embedding.weight [context,d]; for each block i: block.{i}.attention.norm.{weight,bias}
// [d], block.{i}.attention.qkv.{weight [3d,d],bias}, block.{i}.attention.projection.{weight
// [d,d],bias}, block.{i}.feed_forward.norm.{weight,bias}, block.{i}.feed_forward.up.{weight
// [h,d],bias}, block.{i}.feed_forward.down.{weight [d,h],bias}; final_norm.{weight,bias};
// head.{weight [V,d] unless tied, bias}.
ParameterLayout MakeLayout(const ModelConfig& config);

// The tensors, each as large as the parameters, that an optimizer carries from step to step: what
// a resume state holds beside the parameters. Momentum has its slot also where it is 0.
std::vector<std::string> OptimizerSlots(OptimizerKind kind);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_LAYOUT_H_
