// Reads the sequences of an analysis, and reports their problems before a model is run. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_INPUTS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine {

// Limits of a piece: tokens, and approximate multiply-adds by parameters; a piece has at least one
// row. A core that trains at the same time computes these in a few tenths of a second, which is how
// long a shorter analysis waits.
inline constexpr uint64_t kPieceTokens = 2048;
inline constexpr double kPieceFlops = 4e9;

struct SequencesRead {
  // Unpadded batches, each small enough for one piece, or padded ones as in training if
  // ReadsTrainingBatches. Empty if there are problems.
  std::vector<TokenBatch> batches;
  std::vector<OptionProblem> problems;  // fields as in requests: inputs.prompt, subjects[1]
  // The sentences and words of the rows of all batches. Null if these aren't tagged sentences, or
  // if ReadsTrainingBatches.
  std::shared_ptr<const TaggedRows> tagged = nullptr;
};

// Return the problem of inputs that can't be read: any, that of documents with more than
// kMaxReadTokens tokens together, and that of a character that the run's data lack. The character
// is the `number`-th, from 1, of a `place` such as "line 2".
SequencesRead UnreadableInputs(std::string field, std::string complaint, std::string allowed);
SequencesRead TooManyTokens(const AnalysisInputs& inputs);
SequencesRead UnknownCharacter(absl::string_view place, size_t number, char32_t character,
                               const std::u32string& alphabet);

// Returns true if BatchNorm in this analysis uses batch statistics as in training, because
// gradients depend on them. Otherwise it uses running statistics.
bool ReadsTrainingBatches(const AnalysisOptions& options, const ModelConfig& model);

// Returns every row of the batches as a batch of its own, in order.
std::vector<TokenBatch> SplitRows(const std::vector<TokenBatch>& batches);
// Returns such rows as one batch, padded to the longest; padded targets are ignored.
TokenBatch JoinRows(const std::vector<TokenBatch>& rows);

// Returns the sequences that all subjects, at least one, read. Errors as MakeBatchSource's and
// SampledDataOf's.
absl::StatusOr<SequencesRead> ReadSequences(const AnalysisOptions& options,
                                            const AnalysisInputs& inputs,
                                            const std::vector<const RunConfig*>& subjects);

// Returns an option's problem with its field as in requests: analysis.cka.sites.
OptionProblem InRequest(const AnalysisKind& kind, OptionProblem problem);
// Returns the problem with its subject, if there are several.
OptionProblem OfSubject(size_t subject, size_t subjects, OptionProblem problem);

// Returns the first problem as INVALID_ARGUMENT; OK if there is none.
absl::Status RefusalOf(const std::vector<OptionProblem>& problems);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_INPUTS_H_
