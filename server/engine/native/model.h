// A run's parameters in their places in the model, with their gradients.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_MODEL_H_
#define ABLATE_SERVER_ENGINE_NATIVE_MODEL_H_

#include <vector>

#include "server/engine/config.h"
#include "server/engine/layout.h"

namespace ablate::engine::native {

// What the model does not have is null. Gradients are null where none are asked for.
struct Linear {
  int in = 0;
  int out = 0;
  const float* weight = nullptr;  // [out, in]
  const float* bias = nullptr;
  const float* back = nullptr;  // the weight, or what feedback alignment has in its place
  float* dweight = nullptr;
  float* dbias = nullptr;
};

struct Norm {
  const float* gain = nullptr;
  const float* shift = nullptr;
  float* dgain = nullptr;
  float* dshift = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
};

struct Block {
  Norm attention_norm;
  Linear qkv;
  Linear projection;
  Norm attention_post_norm;
  Norm feed_forward_norm;
  Linear up;
  Linear down;
  Norm feed_forward_post_norm;
  const float* feedback = nullptr;  // [V, d], of the output error
};

struct Model {
  const float* token_embedding = nullptr;  // [V, d]
  float* dtoken_embedding = nullptr;
  const float* position_embedding = nullptr;  // [context, d]
  float* dposition_embedding = nullptr;
  const float* embedding_feedback = nullptr;  // [V, d]
  std::vector<Block> blocks;
  Norm final_norm;
  Linear head;
};

// Flat buffers of a run, as the layout orders them.
struct FlatRun {
  const float* values = nullptr;
  float* gradients = nullptr;  // null: none
  float* buffers = nullptr;    // null where the layout has none
};

// Pointers into `run`, which must outlive them.
Model BindModel(const ModelConfig& config, LearningRule rule, const ParameterLayout& layout,
                const FlatRun& run);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_MODEL_H_
