// Growing sequences read by the native forward pass.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_READER_H_
#define ABLATE_SERVER_ENGINE_NATIVE_READER_H_

#include <memory>

#include "server/engine/analyze/sequence_reader.h"
#include "server/engine/config.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Of a model that does not look ahead a token costs one position: keys and values are kept. Others
// read the whole prefix again. The scores of a sequence have the same bits whatever the others are.
// `model` must outlive it; std::bad_alloc where there is no memory.
std::unique_ptr<SequenceReader> MakeReader(const ModelConfig& config, const Model& model,
                                           int sequences, const Kernels& kernels);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_READER_H_
