// Implements batches of a documents task: documents in a seeded order, whose end is held out.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

constexpr uint64_t kDocumentsCursor = 0x73746E656D75636F;  // "ocuments"

// Documents as rows: BOS, the characters, BOS, cut to the model's context.
class DocumentRows {
 public:
  DocumentRows(std::shared_ptr<const TokenizedDocuments> documents, int64_t context)
      : shared_(std::move(documents)), documents_(*shared_), context_(context) {}

  // Returns the positions of a document's row.
  int64_t Length(uint32_t document) const {
    const size_t characters = documents_.starts[document + 1] - documents_.starts[document];
    return std::min(context_, static_cast<int64_t>(characters) + 1);
  }

  // Returns the documents as one batch, right-padded to the longest.
  TokenBatch Batch(absl::Span<const uint32_t> documents) const {
    TokenBatch batch;
    batch.rows = static_cast<int64_t>(documents.size());
    batch.lengths.reserve(documents.size());
    for (const uint32_t document : documents) batch.lengths.push_back(Length(document));
    batch.length = *std::max_element(batch.lengths.begin(), batch.lengths.end());
    const size_t size = static_cast<size_t>(batch.rows * batch.length);
    batch.inputs.assign(size, 0);
    batch.targets.assign(size, TokenBatch::kIgnored);
    for (size_t row = 0; row < documents.size(); ++row) {
      const size_t begin = row * static_cast<size_t>(batch.length);
      Fill(documents[row], batch.lengths[row], &batch.inputs[begin], &batch.targets[begin]);
    }
    return batch;
  }

 private:
  // Writes a row: tokens are BOS, c0, c1, …, BOS; targets are the inputs one position later.
  void Fill(uint32_t document, int64_t length, int64_t* inputs, int64_t* targets) const {
    const size_t start = documents_.starts[document];
    const int64_t characters = static_cast<int64_t>(documents_.starts[document + 1] - start);
    const uint32_t* tokens = documents_.tokens.data() + start;
    int64_t current = documents_.bos();
    for (int64_t i = 0; i < length; ++i) {
      inputs[i] = current;
      current = i < characters ? tokens[i] : documents_.bos();
      targets[i] = current;
    }
  }

  std::shared_ptr<const TokenizedDocuments> shared_;
  const TokenizedDocuments& documents_;
  int64_t context_;
};

// Returns the documents of each held-out batch, by ascending length; equal lengths in the shuffled
// order.
std::vector<std::vector<uint32_t>> GroupByLength(const DocumentRows& rows,
                                                 absl::Span<const uint32_t> documents) {
  std::map<int64_t, std::vector<uint32_t>> groups;
  for (const uint32_t document : documents) groups[rows.Length(document)].push_back(document);
  constexpr size_t kMaxRows = static_cast<size_t>(BatchSource::kMaxEvaluationBatch);
  std::vector<std::vector<uint32_t>> batches;
  for (const auto& [length, group] : groups) {
    for (size_t begin = 0; begin < group.size(); begin += kMaxRows) {
      const auto batch = absl::MakeConstSpan(group).subspan(begin, kMaxRows);
      batches.emplace_back(batch.begin(), batch.end());
    }
  }
  return batches;
}

std::vector<TokenBatch> BatchesByLength(const DocumentRows& rows,
                                        absl::Span<const uint32_t> documents) {
  std::vector<TokenBatch> batches;
  for (const std::vector<uint32_t>& group : GroupByLength(rows, documents)) {
    batches.push_back(rows.Batch(group));
  }
  return batches;
}

class DocumentBatches : public BatchSource {
 public:
  // `order` is the shuffled order of all documents; the last `held_out` are never trained on.
  DocumentBatches(DocumentRows rows, std::vector<uint32_t> order, size_t held_out, uint32_t batch)
      : rows_(std::move(rows)),
        order_(std::move(order)),
        training_(order_.size() - held_out),
        batch_(batch),
        held_out_(GroupByLength(rows_, HeldOutOrder())) {}

  TokenBatch Next() override {
    std::vector<uint32_t> documents(batch_);
    for (uint32_t& document : documents) {
      document = order_[position_];
      position_ = (position_ + 1) % training_;
    }
    return rows_.Batch(documents);
  }

  size_t HeldOutBatches() const override { return held_out_.size(); }

  TokenBatch HeldOut(size_t index) const override { return rows_.Batch(held_out_[index]); }

  std::optional<std::vector<TokenBatch>> FirstHeldOut(uint64_t sequences,
                                                      uint64_t most_tokens) const override {
    const auto first = HeldOutOrder().subspan(0, static_cast<size_t>(sequences));
    uint64_t tokens = 0;
    for (const uint32_t document : first) tokens += static_cast<uint64_t>(rows_.Length(document));
    if (tokens > most_tokens) return std::nullopt;
    return BatchesByLength(rows_, first);
  }

  std::vector<uint64_t> Cursor() const override { return {kDocumentsCursor, training_, position_}; }

  absl::Status SetCursor(const std::vector<uint64_t>& cursor) override {
    RETURN_IF_ERROR(CheckCursor(cursor, 3, kDocumentsCursor, "documents"));
    if (cursor[1] != training_ || cursor[2] >= training_) {
      return absl::InvalidArgumentError(absl::StrCat("the data cursor is at document ", cursor[2],
                                                     " of ", cursor[1], ", but this run trains on ",
                                                     training_, " documents"));
    }
    position_ = static_cast<size_t>(cursor[2]);
    return absl::OkStatus();
  }

 private:
  absl::Span<const uint32_t> HeldOutOrder() const {
    return absl::MakeConstSpan(order_).subspan(training_);
  }

  DocumentRows rows_;
  std::vector<uint32_t> order_;
  size_t training_;  // number of documents in the order that are trained on; the others are held
                     // out
  uint32_t batch_;
  size_t position_ = 0;                          // of the next document in `order_`
  std::vector<std::vector<uint32_t>> held_out_;  // documents of each batch
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> MakeDocumentBatches(const RunConfig& config) {
  const auto& task = std::get<DocumentsTask>(config.task);
  if (config.model.context < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.context is ", config.model.context, ", but must be at least 1"));
  }
  if (task.documents == nullptr) {
    return absl::InvalidArgumentError("task: its documents were not read");
  }
  const size_t count = task.documents->documents();
  if (count > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", count, " documents, but at most 4294967295 are supported"));
  }
  if (task.held_out >= count) {
    return absl::InvalidArgumentError(absl::StrCat("task.held_out is ", task.held_out,
                                                   ", but must be below the number of documents, ",
                                                   count, ", to leave one to train on"));
  }
  return std::make_unique<DocumentBatches>(DocumentRows(task.documents, config.model.context),
                                           PythonShuffle(static_cast<uint32_t>(count), config.seed),
                                           task.held_out, config.training.batch);
}

std::vector<TokenBatch> DocumentBatchesOf(std::shared_ptr<const TokenizedDocuments> documents,
                                          int64_t context) {
  std::vector<uint32_t> all(documents->documents());
  std::iota(all.begin(), all.end(), 0u);
  return BatchesByLength(DocumentRows(std::move(documents), context), all);
}

}  // namespace ablate::engine
