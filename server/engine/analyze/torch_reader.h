// Reads growing sequences with LibTorch.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_TORCH_READER_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_TORCH_READER_H_

#include <memory>

#include "server/engine/config.h"
#include "server/engine/core/analyses/sequence_reader.h"
#include "server/engine/torch/model/parameters.h"

namespace ablate::engine {

// A token costs one position in a causal model, and the whole prefix in others. `parameters` must
// outlive the result.
std::unique_ptr<SequenceReader> MakeTorchReader(const ModelConfig& config,
                                                const ModelParameters& parameters, int sequences);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_TORCH_READER_H_
