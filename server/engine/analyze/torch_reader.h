// Growing sequences read by LibTorch.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_TORCH_READER_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_TORCH_READER_H_

#include <memory>

#include "server/engine/analyze/sequence_reader.h"
#include "server/engine/config.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// Of a causal model a token costs one position, of others the whole prefix. `parameters` must
// outlive it.
std::unique_ptr<SequenceReader> MakeTorchReader(const ModelConfig& config,
                                                const ModelParameters& parameters, int sequences);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_TORCH_READER_H_
