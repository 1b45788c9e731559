// The table of tasks: what a kind of task reads, what that fixes of the model, where its batches
// come from and what its tokens mean. And the facts of a data set that a server keeps. Torch-free.
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

// Facts of a text, read as documents, found by one pass over it.
struct DocumentFacts {
  uint64_t documents = 0;    // non-empty lines
  uint32_t characters = 0;   // distinct code points; the vocabulary is one more (BOS)
  uint64_t longest = 0;      // code points of the longest document
  uint64_t code_points = 0;  // over all documents
  uint64_t line_ends = 0;    // those of empty lines, too
  // Documents by their code points, up to kCountedLength, which counts all that are longer too.
  std::vector<uint64_t> lengths;

  static constexpr size_t kCountedLength = 8192;  // no model's context is longer
};

// How many of the documents a context cuts, `lengths` as in DocumentFacts: a document takes one
// position more than it has code points, for the token that ends it.
uint64_t CutDocuments(const std::vector<uint64_t>& lengths, uint64_t context);

// INVALID_ARGUMENT if the text is not UTF-8 (with the byte offset), holds a control character other
// than line ends and tabs, or has no document.
absl::StatusOr<DocumentFacts> InspectDocuments(absl::string_view text);

// The same for a text that comes in pieces, cut anywhere: keeps no more of it than a line.
class DocumentInspector {
 public:
  DocumentInspector();
  ~DocumentInspector();
  absl::Status Add(absl::string_view piece);
  // Of everything that was added; to be called once, last.
  absl::StatusOr<DocumentFacts> Finish();

 private:
  struct Characters;

  // Whole lines, which follow what was inspected before.
  absl::Status Inspect(absl::string_view lines);

  std::unique_ptr<Characters> characters_;
  DocumentFacts facts_;
  std::string line_;  // what has come of one
  size_t inspected_ = 0;
};

// What a text has when it is read as a whole: a line end is a character then.
struct TextFacts {
  uint64_t tokens = 0;
  uint32_t characters = 0;  // distinct ones
};
TextFacts FactsOfText(const DocumentFacts& facts);

// How a text is cut. The first ⌊tokens · (1 − validation)⌋ tokens are trained on, in windows of
// `context` tokens and the one behind each; the others are evaluated in windows that follow each
// other from their first token on, whose targets are one later. `validation` is above 0 and below
// 1, `context` at least 1.
struct TextSplit {
  uint64_t training = 0;
  uint64_t validation = 0;
  uint64_t starts = 0;   // places where a window to train on may begin: the first so many tokens
  uint64_t windows = 0;  // whole ones to evaluate
};
TextSplit SplitText(uint64_t tokens, double validation, uint64_t context);

// Windows that an evaluation reads: of the first so many batches, all if `batches` is 0.
inline constexpr uint64_t kEvaluatedTogether = 32;  // windows in a batch
uint64_t EvaluatedWindows(const TextSplit& split, uint32_t batches);

// What a task's data set holds, read once: runs share it.
struct TaskData {
  virtual ~TaskData() = default;
  virtual uint64_t bytes() const = 0;  // of memory
};

// Facts of a task that fix parts of the model.
struct TaskShape {
  int vocabulary = 0;
  int sequence = 0;  // longest input in tokens; 0 where the model's context bounds it
  LossPositions loss = LossPositions::kAll;
};

TaskShape DocumentsShape(const DocumentFacts& facts);
TaskShape LegacyRecallShape(const LegacyRecallTask& task);
TaskShape RecallShape(const RecallTask& task);
TaskShape TextShape(const TextFacts& facts);

class BatchSource;  // data/batches.h

// A row of the table.
struct TaskKind {
  absl::string_view name;  // as specs have it
  // Reads a data set, and puts what was read into a task of this kind. Null for a task that
  // generates its data. INVALID_ARGUMENT says what is wrong with the data set.
  absl::StatusOr<std::shared_ptr<const TaskData>> (*read)(absl::string_view file);
  void (*set_data)(std::shared_ptr<const TaskData> data, TaskConfig* task);
  // INVALID_ARGUMENT if the task's data was not read.
  absl::StatusOr<TaskShape> (*shape)(const TaskConfig& task);
  absl::StatusOr<std::unique_ptr<BatchSource>> (*batches)(const RunConfig& run);
  // What tokens mean, as JSON: {"characters": [...], "bos": id}, without "bos" for a text. Empty
  // where they are numbers.
  std::string (*vocabulary)(const TaskConfig& task);
};

// The row of a task.
const TaskKind& KindOf(const TaskConfig& task);

// A documents task with the documents of a text, and a text task with all of it.
absl::StatusOr<DocumentsTask> ReadDocumentsTask(absl::string_view text, uint32_t held_out);
absl::StatusOr<TextTask> ReadTextTask(absl::string_view text, double validation);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TASK_H_
