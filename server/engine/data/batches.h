// Where batches come from: training batches in a run's order, held-out batches in a fixed one.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_DATA_BATCHES_H_
#define ABLATE_SERVER_ENGINE_DATA_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Sequences of one batch, right-padded to the longest. Padded targets are kIgnored and count
// nowhere.
struct TokenBatch {
  static constexpr int64_t kIgnored = -100;
  int64_t rows = 0;
  int64_t length = 0;
  std::vector<int64_t> inputs;  // [rows, length]; padded with token 0
  std::vector<int64_t>
      targets;  // [rows, length], or [rows] when the loss reads the last position only
  std::vector<int64_t> lengths;  // [rows], real tokens of each row

  // Whether no row is padded, so that no mask beyond the causal one is needed.
  bool uniform() const;

  // Without padding.
  uint64_t tokens() const;

  // `count` rows from `first` on as a batch of their own, padded to the longest of them.
  TokenBatch Rows(int64_t first, int64_t count) const;
};

// Why a BatchNorm refuses to standardise a batch.
inline constexpr char kOnePosition[] =
    "a batch of one position in all has no variance that BatchNorm could divide by";

// A run's stream of batches. The training order is a function of (task, seed) alone. Not
// thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The next training batch.
  virtual TokenBatch Next() = 0;

  // How many batches are held out, and the one of an index below that, the same at every call: for
  // documents grouped by length so that none is padded (at most `kMaxEvaluationBatch` rows each),
  // for generated tasks `evaluation.batches` of them, for a text its EvaluatedWindows (task.h),
  // `kEvaluatedTogether` a batch. Made when they are asked for, since as batches a data set's
  // tokens take several times their memory.
  virtual size_t HeldOutBatches() const = 0;
  virtual TokenBatch HeldOut(size_t index) const = 0;

  // The first so many held-out sequences, all if there are fewer, in such batches; nothing if they
  // have more than `most_tokens` together. Of documents those that come first in the run's order,
  // whatever their length.
  virtual std::optional<std::vector<TokenBatch>> FirstHeldOut(uint64_t sequences,
                                                              uint64_t most_tokens) const;

  // Position in the stream: opaque words that SetCursor takes back. INVALID_ARGUMENT if they are
  // not ours.
  virtual std::vector<uint64_t> Cursor() const = 0;
  virtual absl::Status SetCursor(const std::vector<uint64_t>& cursor) = 0;

  static constexpr int64_t kMaxEvaluationBatch = 256;
};

// INVALID_ARGUMENT if the task's data was not read or cannot be used (nothing left to train on).
absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatchSource(const RunConfig& config);

// INVALID_ARGUMENT unless a cursor has so many words and begins with a task's own, `tag`; `task` is
// as errors have it.
absl::Status CheckCursor(const std::vector<uint64_t>& cursor, size_t words, uint64_t tag,
                         absl::string_view task);

// The same for a run whose task is known; `training.batch` must be checked. Documents come in a
// seeded order, its end held out, the rest cycled over; sequences of recall are generated; windows
// of a text begin anywhere in its training part.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeDocumentBatches(const RunConfig& config);
absl::StatusOr<std::unique_ptr<BatchSource>> MakeLegacyRecallBatches(const RunConfig& config);
absl::StatusOr<std::unique_ptr<BatchSource>> MakeRecallBatches(const RunConfig& config);
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTextBatches(const RunConfig& config);

// All documents, and all whole windows of a text from its first token on, in batches as held-out
// ones.
std::vector<TokenBatch> DocumentBatchesOf(std::shared_ptr<const TokenizedDocuments> documents,
                                          int64_t context);
std::vector<TokenBatch> TextBatchesOf(const TokenizedText& text, int64_t context);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_BATCHES_H_
