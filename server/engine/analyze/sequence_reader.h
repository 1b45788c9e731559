// What samples are drawn by: a model that reads sequences while they grow. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_SEQUENCE_READER_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_SEQUENCE_READER_H_

#include <cstdint>

#include "absl/types/span.h"

namespace ablate::engine {

// Sequences of one length, none at first; at most the model's context. Not thread-safe. What it
// throws becomes a Status where the analysis begins (train/boundary.h).
class SequenceReader {
 public:
  virtual ~SequenceReader() = default;

  // Appends a token to every sequence: the scores of the one behind it, [sequences][vocabulary].
  virtual void Next(absl::Span<const uint32_t> tokens, absl::Span<double> scores) = 0;

  // Goes on with these sequences alone, ascending, in this order.
  virtual void Keep(absl::Span<const uint32_t> sequences) = 0;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_SEQUENCE_READER_H_
