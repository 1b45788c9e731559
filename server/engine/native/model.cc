#include "server/engine/native/model.h"

namespace ablate::engine::native {
namespace {

Norm* NormOf(Module module, Model& model, Block* block) {
  switch (module) {
    case Module::kAttentionNorm:
      return &block->attention_norm;
    case Module::kQueryNorm:
      return &block->query_norm;
    case Module::kKeyNorm:
      return &block->key_norm;
    case Module::kAttentionPostNorm:
      return &block->attention_post_norm;
    case Module::kFeedForwardNorm:
      return &block->feed_forward_norm;
    case Module::kFeedForwardPostNorm:
      return &block->feed_forward_post_norm;
    case Module::kEmbeddingNorm:
      return &model.embedding_norm;
    case Module::kFinalNorm:
      return &model.final_norm;
    default:
      return nullptr;
  }
}

UpdateFactor* UpdateFactorOf(Module module, Block* block) {
  if (module == Module::kAttentionUpdateGain) return &block->attention_factor;
  return module == Module::kFeedForwardUpdateGain ? &block->feed_forward_factor : nullptr;
}

void BindNorm(ParameterRole role, const float* value, float* gradient, Norm* norm) {
  switch (role) {
    case ParameterRole::kGain:
      norm->gain = value;
      norm->dgain = gradient;
      break;
    case ParameterRole::kAlpha:
      norm->alpha = value;
      norm->dalpha = gradient;
      break;
    case ParameterRole::kOffset:
      norm->offset = value;
      norm->doffset = gradient;
      break;
    default:
      norm->shift = value;
      norm->dshift = gradient;
  }
}

Linear* LinearOf(Module module, Model& model, Block* block) {
  switch (module) {
    case Module::kQkv:
      return &block->qkv;
    case Module::kProjection:
      return &block->projection;
    case Module::kUp:
      return &block->up;
    case Module::kDown:
      return &block->down;
    case Module::kHead:
      return &model.head;
    default:
      return nullptr;
  }
}

// A parameter and its gradient.
struct Place {
  const float* value;
  float* gradient;
};

void BindParameter(const ParameterInfo& info, const Place& at, Model& model) {
  Block* const block = info.block < 0 ? nullptr : &model.blocks[static_cast<size_t>(info.block)];
  if (info.module == Module::kTokenEmbedding) {
    model.token_embedding = at.value;
    model.dtoken_embedding = at.gradient;
  } else if (info.module == Module::kPositionEmbedding) {
    model.position_embedding = at.value;
    model.dposition_embedding = at.gradient;
  } else if (Norm* norm = NormOf(info.module, model, block)) {
    BindNorm(info.role, at.value, at.gradient, norm);
  } else if (UpdateFactor* factor = UpdateFactorOf(info.module, block)) {
    factor->gain = at.value;
    factor->dgain = at.gradient;
  } else if (Linear* linear = LinearOf(info.module, model, block)) {
    const bool bias = info.role == ParameterRole::kBias;
    linear->in = static_cast<int>(info.fan_in);
    linear->out = static_cast<int>(info.fan_out);
    (bias ? linear->bias : linear->weight) = at.value;
    (bias ? linear->dbias : linear->dweight) = at.gradient;
    if (!bias) linear->back = at.value;
  }
}

void BindBuffer(const BufferInfo& info, float* at, Model& model) {
  Block none;
  Block& block = info.block < 0 ? none : model.blocks[static_cast<size_t>(info.block)];
  if (Norm* norm = NormOf(info.module, model, &block)) {
    const bool mean = info.role == BufferRole::kRunningMean;
    (mean ? norm->running_mean : norm->running_variance) = at;
  } else if (Linear* linear = LinearOf(info.module, model, &block)) {
    linear->back = at;
  } else if (info.module == Module::kTokenEmbedding) {
    model.embedding_feedback = at;
  } else {
    block.feedback = at;
  }
}

}  // namespace

Model BindModel(const ModelConfig& config, LearningRule rule, const ParameterLayout& layout,
                const FlatRun& run) {
  Model model;
  model.blocks.resize(static_cast<size_t>(config.layers));
  for (const ParameterInfo& info : layout.parameters) {
    float* const gradient = run.gradients == nullptr ? nullptr : run.gradients + info.offset;
    BindParameter(info, {run.values + info.offset, gradient}, model);
  }
  for (const BufferInfo& info : layout.buffers) {
    // An exact gradient uses the weights, even if the layout has feedback matrices.
    if (info.role == BufferRole::kFeedback && rule == LearningRule::kBackprop) continue;
    BindBuffer(info, run.buffers + info.offset, model);
  }
  model.head.in = config.width;
  model.head.out = config.vocabulary;
  if (config.tied_head) {
    model.head.weight = model.head.back = model.token_embedding;
    model.head.dweight = model.dtoken_embedding;
  }
  return model;
}

}  // namespace ablate::engine::native
