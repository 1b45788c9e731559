// Maps a run's flat parameters and gradients to the parts of a model.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_MODEL_H_
#define ABLATE_SERVER_ENGINE_NATIVE_MODEL_H_

#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/layout.h"

namespace ablate::engine::native {

// Parts that the model lacks are null. Gradients are null if they aren't wanted.
struct Linear {
  int in = 0;
  int out = 0;
  const float* weight = nullptr;  // [out, in]
  const float* bias = nullptr;
  const float* back = nullptr;  // the weight, or its replacement in feedback alignment
  float* dweight = nullptr;
  float* dbias = nullptr;
};

struct Norm {
  const float* gain = nullptr;
  const float* shift = nullptr;
  const float* alpha = nullptr;
  const float* offset = nullptr;
  float* dgain = nullptr;
  float* dshift = nullptr;
  float* dalpha = nullptr;
  float* doffset = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
};

// The learned factor of a sublayer's update: of each feature, or of all.
struct UpdateFactor {
  const float* gain = nullptr;
  float* dgain = nullptr;
};

struct Block {
  Norm attention_norm;
  Linear qkv;
  Norm query_norm;  // gains of queries and keys
  Norm key_norm;
  Linear projection;
  Norm attention_post_norm;
  UpdateFactor attention_factor;
  Norm feed_forward_norm;
  Linear up;
  Linear down;
  Norm feed_forward_post_norm;
  UpdateFactor feed_forward_factor;
  const float* feedback = nullptr;  // [V, d], projects the output error
};

struct Model {
  const float* token_embedding = nullptr;  // [V, d]
  float* dtoken_embedding = nullptr;
  const float* position_embedding = nullptr;  // [context, d]
  float* dposition_embedding = nullptr;
  const float* embedding_feedback = nullptr;  // [V, d]
  Norm embedding_norm;
  std::vector<Block> blocks;
  Norm final_norm;
  Linear head;
};

// Flat buffers of a run, in layout order.
struct FlatRun {
  const float* values = nullptr;
  float* gradients = nullptr;  // null: none
  float* buffers = nullptr;    // null if the layout has none
};

// Returns pointers into `run`, whose buffers must outlive them.
Model BindModel(const ModelConfig& config, LearningRule rule, const ParameterLayout& layout,
                const FlatRun& run);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_MODEL_H_
