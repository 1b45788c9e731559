// Reads growing sequences with the native forward pass.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_READER_H_
#define ABLATE_SERVER_ENGINE_NATIVE_READER_H_

#include <memory>

#include "server/engine/config.h"
#include "server/engine/core/analyses/sequence_reader.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Returns a reader of `sequences` sequences. A token costs one position in a model that doesn't
// look ahead, because keys and values are cached, and the whole prefix in others. The bits of a
// sequence's logits don't depend on the other sequences. `model` must outlive the result. Throws
// std::bad_alloc if out of memory.
std::unique_ptr<SequenceReader> MakeReader(const ModelConfig& config, const Model& model,
                                           int sequences, const Kernels& kernels);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_READER_H_
