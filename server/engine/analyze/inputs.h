// The sequences that an analysis reads, and what is wrong with them before any model sees them.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_INPUTS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"
#include "server/engine/data/batches.h"

namespace ablate::engine {

// What a piece takes at most: so many tokens, and about so many multiplications and additions by
// parameters, but a row of tokens at least. A core that trains beside it makes those in some tenths
// of a second, which is how long a shorter analysis waits for the piece.
inline constexpr uint64_t kPieceTokens = 2048;
inline constexpr double kPieceFlops = 4e9;

struct SequencesRead {
  // Unpadded parts that a piece may take or, if ReadsTrainingBatches, padded batches as in
  // training. Empty if there are problems.
  std::vector<TokenBatch> batches;
  std::vector<OptionProblem> problems;  // fields as in requests: inputs.prompt, subjects[1]
};

// Returns true if a BatchNorm in this analysis standardises by the statistics of a batch, as in
// training: its gradients are those that the run learns from. Otherwise it has its running ones.
bool ReadsTrainingBatches(const AnalysisOptions& options, const ModelConfig& model);

// Returns every row of the batches as a batch of its own, in their order.
std::vector<TokenBatch> SplitRows(const std::vector<TokenBatch>& batches);
// Returns such rows as one batch, padded to the longest; padded targets are ignored.
TokenBatch JoinRows(const std::vector<TokenBatch>& rows);

// What all subjects, one at least, read. Errors as MakeBatchSource's and SampledDataOf's.
absl::StatusOr<SequencesRead> ReadSequences(const AnalysisOptions& options,
                                            const AnalysisInputs& inputs,
                                            const std::vector<const RunConfig*>& subjects);

// An option's problem with its field as in requests: analysis.cka.sites.
OptionProblem InRequest(const AnalysisKind& kind, OptionProblem problem);
// The same where it is one of several subjects that has it.
OptionProblem OfSubject(size_t subject, size_t subjects, OptionProblem problem);

// The first of them as INVALID_ARGUMENT; OK if there is none.
absl::Status RefusalOf(const std::vector<OptionProblem>& problems);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_INPUTS_H_
