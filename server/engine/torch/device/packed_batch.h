// Packs token batches as rows of int64 numbers, which a captured graph reads. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_TORCH_DEVICE_PACKED_BATCH_H_
#define ABLATE_SERVER_ENGINE_TORCH_DEVICE_PACKED_BATCH_H_

#include <compare>
#include <cstdint>

#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine {

// The shape of a packed batch; a graph is captured per shape. Rows and lengths are padded to few
// values, so that a run has few graphs.
struct PackedShape {
  int64_t rows = 0;
  int64_t length = 0;
  int64_t targets = 0;   // of each row: `length`, or 1 if the loss reads the last position only
  bool padded = false;   // true if rows may have padding
  bool ignores = false;  // true if targets may be ignored

  auto operator<=>(const PackedShape&) const = default;  // NOLINT(modernize-use-nullptr)

  // Numbers of a packed batch: tokens [rows·length], targets [rows·targets], lengths [rows].
  int64_t words() const { return rows * (length + targets + 1); }
};

// Decides the shapes of a run's batches. If its documents differ in length, a batch's length is
// padded to the next power of two, at least 16 and at most the model's context, and evaluation
// batches are put together and padded to 4, 16, 64, 256 or 1,024 rows. A shape depends on the run
// and its batches alone.
class Packing {
 public:
  explicit Packing(const RunConfig& run);

  PackedShape UpdateShape(const TokenBatch& batch) const;
  // Returns true if these batches may be evaluated as one.
  bool Fit(absl::Span<const TokenBatch> batches) const;
  // Returns the shape of evaluation batches as one: of a single batch, or of several that fit.
  PackedShape EvaluationShape(absl::Span<const TokenBatch> batches) const;

  // Return the words of the largest shape that a batch of the same kind can have.
  int64_t MostUpdateWords(const PackedShape& shape) const;
  int64_t MostEvaluationWords(const PackedShape& shape) const;

 private:
  // Returns the length that documents of this length are padded to.
  int64_t PaddedLength(int64_t length) const;

  bool ragged_;
  int64_t context_;
  LossPositions loss_;
};

// Writes shape.words() numbers: the rows of all batches. Padding has token 0 and ignored targets;
// added rows have length 1.
void PackBatches(absl::Span<const TokenBatch> batches, const PackedShape& shape, int64_t* words);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_DEVICE_PACKED_BATCH_H_
