// Defines the table of tasks: for each kind, its data set, the parts of the model that the data
// fix, its batches and the meaning of its tokens. Also computes the facts of a data set that a
// server stores. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_TASK_H_
#define ABLATE_SERVER_ENGINE_TASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Facts of a text read as documents, found in one pass. Of documents that are tokens, `characters`
// is the vocabulary with the boundary, and code points are tokens.
struct DocumentFacts {
  uint64_t documents = 0;    // non-empty lines
  uint32_t characters = 0;   // distinct code points; the vocabulary is one more (BOS)
  uint64_t longest = 0;      // code points of the longest document
  uint64_t code_points = 0;  // over all documents
  uint64_t line_ends = 0;    // including those of empty lines
  // Number of documents by length in code points. The last entry, kCountedLength, also counts all
  // longer documents.
  std::vector<uint64_t> lengths;

  static constexpr size_t kCountedLength = 8192;  // no model's context is longer
};

// Returns how many documents don't fit a context, given `lengths` as in DocumentFacts. A document
// takes one more position than it has code points, because of the token that ends it.
uint64_t CutDocuments(const std::vector<uint64_t>& lengths, uint64_t context);

// Returns INVALID_ARGUMENT if the text isn't UTF-8 or holds a control character other than line
// ends and tabs, with line and column of the first ten lines that do, or has no document.
absl::StatusOr<DocumentFacts> InspectDocuments(absl::string_view text);

// Returns the facts of documents that a tokenizer has encoded.
DocumentFacts FactsOfEncoded(const TokenizedDocuments& documents);

// Computes the facts of a text that arrives in pieces cut anywhere. Holds at most one line of
// it.
class DocumentInspector {
 public:
  DocumentInspector();
  ~DocumentInspector();
  absl::Status Add(absl::string_view piece);
  // Returns the facts of all added text. Call it once, last.
  absl::StatusOr<DocumentFacts> Finish();

 private:
  struct Characters;

  // Adds whole lines, which follow those inspected before. Keeps the problems of the first lines
  // that aren't text; returns them if there are too many.
  absl::Status Inspect(absl::string_view lines);

  std::unique_ptr<Characters> characters_;
  DocumentFacts facts_;
  std::string line_;  // the incomplete last line so far
  std::vector<std::string> problems_;
};

// Facts of a text read as a whole: a line end is a character then.
struct TextFacts {
  uint64_t tokens = 0;
  uint32_t characters = 0;  // distinct ones
};
TextFacts FactsOfText(const DocumentFacts& facts);

// Describes the split of a text. The first ⌊tokens · (1 − validation)⌋ tokens are trained on, in
// windows of `context` tokens plus the token that follows. The rest is evaluated in consecutive
// windows from its first token on; targets are shifted by one. `validation` is above 0 and below 1,
// `context` at least 1.
struct TextSplit {
  uint64_t training = 0;
  uint64_t validation = 0;
  uint64_t starts = 0;   // start positions of training windows: the first `starts` tokens
  uint64_t windows = 0;  // whole windows to evaluate
};
TextSplit SplitText(uint64_t tokens, double validation, uint64_t context);

// The windows that an evaluation of a text reads, from the first one on.
struct EvaluatedWindows {
  uint64_t windows = 0;
  uint64_t together = 0;  // in a batch; the last one may have fewer

  uint64_t batches() const { return (windows + together - 1) / together; }
};

// The number of windows in a batch, unless an evaluation is measured in tokens: its batches have
// about kTokensTogether tokens then, so that one of a long context doesn't take minutes.
inline constexpr uint64_t kEvaluatedTogether = 32;
inline constexpr uint64_t kTokensTogether = 4096;
EvaluatedWindows WindowsToEvaluate(const TextSplit& split, uint64_t context,
                                   const EvaluationConfig& evaluation);

// Holds the contents of a task's data set, read once and shared by runs.
struct TaskData {
  virtual ~TaskData() = default;
  virtual uint64_t bytes() const = 0;  // of memory
};

// Properties of the model that a task fixes.
struct TaskShape {
  int vocabulary = 0;
  int sequence = 0;  // longest input in tokens; 0 if the model's context bounds it
  LossPositions loss = LossPositions::kAll;
};

TaskShape DocumentsShape(uint32_t vocabulary);  // with the boundary
TaskShape LegacyRecallShape(const LegacyRecallTask& task);
TaskShape RecallShape(const RecallTask& task);
TaskShape TextShape(const TextFacts& facts);

class BatchSource;  // core/data/batches.h

// A row of the table of tasks.
struct TaskKind {
  absl::string_view name;  // as specs have it
  // `read` parses a data set and `set_data` stores the result in a task of this kind; both are null
  // for a task that generates its data. Returns INVALID_ARGUMENT with the problem of the data set.
  absl::StatusOr<std::shared_ptr<const TaskData>> (*read)(absl::string_view file);
  void (*set_data)(std::shared_ptr<const TaskData> data, TaskConfig* task);
  // Returns INVALID_ARGUMENT if the task's data wasn't read.
  absl::StatusOr<TaskShape> (*shape)(const TaskConfig& task);
  absl::StatusOr<std::unique_ptr<BatchSource>> (*batches)(const RunConfig& run);
  // Returns the meaning of tokens as JSON: {"characters": [...]}, or {"tokenizer":
  // "byte_level_bpe", "tokens": number, "hash": of their texts} for stored tokens; of documents
  // with "bos": id. Empty if tokens are numbers.
  std::string (*vocabulary)(const TaskConfig& task);
};

// Returns the row of a task.
const TaskKind& KindOf(const TaskConfig& task);

// Returns true if the task's data set holds tokens and their tokenizer.
bool HasStoredTokens(const TaskConfig& task);

// Return a documents task with the documents of a text, and a text task with all of it.
absl::StatusOr<DocumentsTask> ReadDocumentsTask(absl::string_view text, uint32_t held_out);
absl::StatusOr<TextTask> ReadTextTask(absl::string_view text, double validation);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TASK_H_
