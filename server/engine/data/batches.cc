#include "server/engine/data/batches.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/data/documents.h"
#include "server/engine/data/random.h"
#include "server/engine/task.h"

namespace ablate::engine {
namespace {

constexpr uint64_t kDocumentsCursor = 0x73746E656D75636F;  // "ocuments"

// Documents as rows: BOS, the characters, BOS, cut to the model's context.
class DocumentRows {
 public:
  DocumentRows(std::shared_ptr<const TokenizedDocuments> documents, int64_t context)
      : shared_(std::move(documents)), documents_(*shared_), context_(context) {}

  // Positions that a document's row has.
  int64_t Length(uint32_t document) const {
    const size_t characters = documents_.starts[document + 1] - documents_.starts[document];
    return std::min(context_, static_cast<int64_t>(characters) + 1);
  }

  // The documents as one batch, right-padded to the longest.
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
  // The row's tokens are BOS, c0, c1, …, BOS; targets are the inputs one position later.
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

// Held-out batches by ascending length; within a length in the shuffled order.
std::vector<TokenBatch> GroupByLength(const DocumentRows& rows,
                                      absl::Span<const uint32_t> documents) {
  std::map<int64_t, std::vector<uint32_t>> groups;
  for (const uint32_t document : documents) groups[rows.Length(document)].push_back(document);
  constexpr size_t kMaxRows = static_cast<size_t>(BatchSource::kMaxEvaluationBatch);
  std::vector<TokenBatch> batches;
  for (const auto& [length, group] : groups) {
    for (size_t begin = 0; begin < group.size(); begin += kMaxRows) {
      batches.push_back(rows.Batch(absl::MakeConstSpan(group).subspan(begin, kMaxRows)));
    }
  }
  return batches;
}

class DocumentBatches : public BatchSource {
 public:
  // `order` is the shuffled order of all documents, of which the last `held_out` are never trained
  // on.
  DocumentBatches(DocumentRows rows, std::vector<uint32_t> order, size_t held_out, uint32_t batch)
      : rows_(std::move(rows)), order_(std::move(order)), batch_(batch) {
    const size_t training = order_.size() - held_out;
    held_out_ = GroupByLength(rows_, absl::MakeConstSpan(order_).subspan(training));
    order_.resize(training);
  }

  TokenBatch Next() override {
    std::vector<uint32_t> documents(batch_);
    for (uint32_t& document : documents) {
      document = order_[position_];
      position_ = (position_ + 1) % order_.size();
    }
    return rows_.Batch(documents);
  }

  const std::vector<TokenBatch>& HeldOut() override { return held_out_; }

  std::vector<uint64_t> Cursor() const override {
    return {kDocumentsCursor, order_.size(), position_};
  }

  absl::Status SetCursor(const std::vector<uint64_t>& cursor) override {
    if (cursor.size() != 3 || cursor[0] != kDocumentsCursor) {
      return absl::InvalidArgumentError("the data cursor is not one of a documents task");
    }
    if (cursor[1] != order_.size() || cursor[2] >= order_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the data cursor is at document ", cursor[2],
                                                     " of ", cursor[1], ", but this run trains on ",
                                                     order_.size(), " documents"));
    }
    position_ = static_cast<size_t>(cursor[2]);
    return absl::OkStatus();
  }

 private:
  DocumentRows rows_;
  std::vector<uint32_t> order_;  // the documents to train on
  uint32_t batch_;
  size_t position_ = 0;  // of the next document in `order_`
  std::vector<TokenBatch> held_out_;
};

constexpr uint64_t kRecallCursor = 0x6C6C616365722D6C;  // "l-recall"

// Draws `draw` distinct keys at a time.
class KeyDrawer {
 public:
  KeyDrawer(int keys, int draw)
      : keys_(static_cast<size_t>(keys)), swapped_(static_cast<size_t>(draw)) {
    std::iota(keys_.begin(), keys_.end(), int64_t{0});
  }

  // Calls `take(i, key)` for the i-th key drawn, i in [0, draw). A partial Fisher–Yates shuffle,
  // undone afterwards so that a draw depends on the generator's state alone.
  template <typename Take>
  void Draw(SplitMix64& generator, Take take) {
    for (size_t i = 0; i < swapped_.size(); ++i) {
      swapped_[i] = i + generator.Below(keys_.size() - i);
      std::swap(keys_[i], keys_[swapped_[i]]);
      take(i, keys_[i]);
    }
    for (size_t i = swapped_.size(); i-- > 0;) std::swap(keys_[i], keys_[swapped_[i]]);
  }

 private:
  std::vector<int64_t> keys_;
  std::vector<size_t> swapped_;  // what key i was swapped with
};

// Sequences of distinct keys in which the label is the query itself.
class LegacyRecallBatches : public BatchSource {
 public:
  LegacyRecallBatches(const LegacyRecallTask& task, const RunConfig& config)
      : length_(task.draw + 1),
        batch_(config.training.batch),
        drawer_(task.keys, task.draw),
        generator_(StreamSeed(config.seed, "data/train")) {
    SplitMix64 held_out(StreamSeed(config.seed, "data/held_out"));
    for (uint32_t i = 0; i < config.evaluation.batches; ++i)
      held_out_.push_back(Generate(held_out));
  }

  TokenBatch Next() override { return Generate(generator_); }

  const std::vector<TokenBatch>& HeldOut() override { return held_out_; }

  std::vector<uint64_t> Cursor() const override { return {kRecallCursor, generator_.state()}; }

  absl::Status SetCursor(const std::vector<uint64_t>& cursor) override {
    if (cursor.size() != 2 || cursor[0] != kRecallCursor) {
      return absl::InvalidArgumentError("the data cursor is not one of a legacy recall task");
    }
    generator_ = SplitMix64(cursor[1]);
    return absl::OkStatus();
  }

 private:
  // A row is the context, token 0 (left over from the source, which never fills that position), the
  // query.
  TokenBatch Generate(SplitMix64& generator) {
    TokenBatch batch;
    batch.rows = batch_;
    batch.length = length_;
    batch.lengths.assign(static_cast<size_t>(batch_), length_);
    batch.targets.resize(static_cast<size_t>(batch_));
    batch.inputs.assign(static_cast<size_t>(batch_ * length_), 0);
    int64_t* row = batch.inputs.data();
    for (int64_t& label : batch.targets) {
      drawer_.Draw(generator, [&](size_t i, int64_t key) {
        if (i == 0) {
          label = key;
        } else {
          row[i - 1] = key;
        }
      });
      row[length_ - 1] = label;
      row += length_;
    }
    return batch;
  }

  int64_t length_;
  int64_t batch_;
  KeyDrawer drawer_;
  SplitMix64 generator_;
  std::vector<TokenBatch> held_out_;
};

}  // namespace

bool TokenBatch::uniform() const {
  return std::all_of(lengths.begin(), lengths.end(),
                     [this](int64_t real) { return real == length; });
}

uint64_t TokenBatch::tokens() const {
  return static_cast<uint64_t>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
}

TokenBatch TokenBatch::Rows(int64_t first, int64_t count) const {
  TokenBatch part;
  part.rows = count;
  part.lengths.assign(lengths.begin() + first, lengths.begin() + first + count);
  part.length = *std::max_element(part.lengths.begin(), part.lengths.end());
  // Of each row what is not padding of all: targets may be one a row.
  const auto copy = [&](const std::vector<int64_t>& from, std::vector<int64_t>* to) {
    const int64_t width = static_cast<int64_t>(from.size()) / rows;
    for (int64_t row = first; row < first + count; ++row) {
      const auto begin = from.begin() + row * width;
      to->insert(to->end(), begin, begin + std::min(width, part.length));
    }
  };
  copy(inputs, &part.inputs);
  copy(targets, &part.targets);
  return part;
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatchSource(const RunConfig& config) {
  if (config.training.batch < 1) {
    return absl::InvalidArgumentError("training.batch is 0, but must be at least 1");
  }
  return KindOf(config.task).batches(config);
}

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

absl::StatusOr<std::unique_ptr<BatchSource>> MakeLegacyRecallBatches(const RunConfig& config) {
  const auto& task = std::get<LegacyRecallTask>(config.task);
  if (task.draw < 1 || task.draw > task.keys) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.draw is ", task.draw, ", but must be 1 to task.keys, which is ", task.keys));
  }
  return std::make_unique<LegacyRecallBatches>(task, config);
}

}  // namespace ablate::engine
