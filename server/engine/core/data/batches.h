// Produces batches: training batches in a run's order, held-out batches in a fixed order.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_DATA_BATCHES_H_
#define ABLATE_SERVER_ENGINE_CORE_DATA_BATCHES_H_

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

// A batch of sequences, right-padded to the longest. Targets of padding are kIgnored and never
// count.
struct TokenBatch {
  static constexpr int64_t kIgnored = -100;
  int64_t rows = 0;
  int64_t length = 0;
  std::vector<int64_t> inputs;  // [rows, length]; padded with token 0
  std::vector<int64_t>
      targets;  // [rows, length], or [rows] when the loss reads the last position only
  std::vector<int64_t> lengths;  // [rows], tokens of each row without padding

  // Returns true if no row is padded, so that the causal mask suffices.
  bool uniform() const;

  // Number of tokens without padding.
  uint64_t tokens() const;

  // Returns `count` rows, starting with `first`, as a batch padded to the longest of them.
  TokenBatch Rows(int64_t first, int64_t count) const;
};

// The error of a BatchNorm that can't standardise a batch.
inline constexpr char kOnePosition[] =
    "a batch of one position in all has no variance that BatchNorm could divide by";

// Returns true if the run's norms can standardise every micro-batch of a training batch.
bool CanStandardise(const RunConfig& config, const TokenBatch& batch);

// A run's stream of batches. The training order depends on (task, seed) alone. Not thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Returns the next training batch.
  virtual TokenBatch Next() = 0;

  // Return the number of held-out batches, and the batch of an index below that, which is the same
  // at every call. Documents are grouped by length so that none is padded, with at most
  // `kMaxEvaluationBatch` rows in each batch. Generated tasks have `evaluation.batches` batches. A
  // text has those of WindowsToEvaluate (task.h). Batches are built on
  // request, because they take several times the memory of the data set's tokens.
  virtual size_t HeldOutBatches() const = 0;
  virtual TokenBatch HeldOut(size_t index) const = 0;

  // Returns the first `sequences` held-out sequences, or all if there are fewer, in such batches;
  // nullopt if they have more than `most_tokens` tokens. Documents are taken in the run's order,
  // independent of their length.
  virtual std::optional<std::vector<TokenBatch>> FirstHeldOut(uint64_t sequences,
                                                              uint64_t most_tokens) const;

  // Cursor returns the position in the stream, in opaque words that SetCursor accepts. SetCursor
  // returns INVALID_ARGUMENT for other words.
  virtual std::vector<uint64_t> Cursor() const = 0;
  virtual absl::Status SetCursor(const std::vector<uint64_t>& cursor) = 0;

  static constexpr int64_t kMaxEvaluationBatch = 256;
};

// Creates the source for a run. Returns INVALID_ARGUMENT if the task's data wasn't read or can't be
// used (nothing left to train on).
absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatchSource(const RunConfig& config);

// Returns INVALID_ARGUMENT unless a cursor has `words` words and begins with the task's `tag`.
// `task` is the name in errors.
absl::Status CheckCursor(const std::vector<uint64_t>& cursor, size_t words, uint64_t tag,
                         absl::string_view task);

// As MakeBatchSource, for a known task; `training.batch` must be checked. Documents are cycled over
// in a seeded order whose end is held out. Recall sequences are generated. Windows of a text begin
// anywhere in its training part.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeDocumentBatches(const RunConfig& config);
absl::StatusOr<std::unique_ptr<BatchSource>> MakeLegacyRecallBatches(const RunConfig& config);
absl::StatusOr<std::unique_ptr<BatchSource>> MakeRecallBatches(const RunConfig& config);
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTextBatches(const RunConfig& config);

// Return all documents, and all whole windows of a text from its first token on, in batches like
// the held-out ones.
std::vector<TokenBatch> DocumentBatchesOf(std::shared_ptr<const TokenizedDocuments> documents,
                                          int64_t context);
std::vector<TokenBatch> TextBatchesOf(const TokenizedText& text, int64_t context);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_DATA_BATCHES_H_
