// What a run records of its gradients where it is evaluated: by block, on request.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_RECORDER_H_
#define ABLATE_SERVER_ENGINE_TRAIN_RECORDER_H_

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"
#include "server/engine/train/backend.h"

namespace ablate::engine {

// Of the mean loss of one run over `batch`, what `config.evaluation.record` asks for, in the order
// of the blocks. `values` and `buffers` are the run's, in its layout. Statistics of a
// BatchNorm are the batch's, nothing is dropped, and nothing of the run is changed.
//
//   gradient_by_block  gradient/embedding, gradient/block.{i}: the norm of the exact gradient of
//                      the embeddings' sum and of the block's output; parameter_gradient/block.{i}:
//                      of the block's parameters
//   rule_alignment     alignment/block.{i}: the cosine of the gradient that the run learns by, of
//                      the block's parameters, with the exact one; alignment_ratio/block.{i}: their
//                      norms' ratio. By 0 the cosine is NaN, and the ratio infinite or NaN.
//
// The gradient that a run learns by is that of its rule and its norms' backward mode.
std::vector<RecordedValue> RecordGradients(const RunConfig& config, const ParameterLayout& layout,
                                           const at::Tensor& values, const at::Tensor& buffers,
                                           const BatchTensors& batch);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_RECORDER_H_
