// Computes the gradient metrics per block that a run records on request at evaluations.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_RECORDER_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_RECORDER_H_

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {

// Returns the metrics of `config.evaluation.record`, in the order of the blocks, from the mean loss
// of one run over `batch`. `values` and `buffers` are the run's, in layout order. BatchNorm uses
// batch statistics and there is no dropout. The run isn't changed.
//
//   gradient_by_block  gradient/embedding, gradient/block.{i}: the norm of the exact gradient of
//                      the embeddings' sum and of the block's output; parameter_gradient/block.{i}:
//                      of the block's parameters
//   rule_alignment     alignment/block.{i}: the cosine of the run's own gradient of the block's
//                      parameters with the exact one; alignment_ratio/block.{i}: the ratio of
//                      their norms. If a norm is 0 the cosine is NaN and the ratio infinite or NaN.
//
// The run's own gradient is formed by its learning rule and its norms' backward mode.
std::vector<RecordedValue> RecordGradients(const RunConfig& config, const ParameterLayout& layout,
                                           const at::Tensor& values, const at::Tensor& buffers,
                                           const BatchTensors& batch);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_RECORDER_H_
