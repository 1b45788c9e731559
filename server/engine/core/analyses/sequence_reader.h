// Interface of a model that reads growing sequences, to draw samples. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_SEQUENCE_READER_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_SEQUENCE_READER_H_

#include <cstdint>

#include "absl/types/span.h"

namespace ablate::engine {

// Holds sequences of equal length, initially 0 and at most the model's context. Not thread-safe.
// Exceptions become a Status at the analysis's entry point (torch/train/boundary.h).
class SequenceReader {
 public:
  virtual ~SequenceReader() = default;

  // Appends a token to every sequence. Writes the logits of the following token,
  // [sequences][vocabulary].
  virtual void Next(absl::Span<const uint32_t> tokens, absl::Span<double> logits) = 0;

  // Keeps only these sequences, ascending, in this order.
  virtual void Keep(absl::Span<const uint32_t> sequences) = 0;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_SEQUENCE_READER_H_
