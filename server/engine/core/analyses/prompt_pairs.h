// Reads and checks the pairs of prompts of `patch`, and estimates its cost. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_PROMPT_PAIRS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_PROMPT_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Two prompts of equally many tokens, and an answer to each.
struct PromptPair {
  std::vector<int64_t> clean;  // tokens, including the boundary that opens a document
  std::vector<int64_t> corrupt;
  int64_t right = 0;
  int64_t wrong = 0;

  int64_t length() const { return static_cast<int64_t>(clean.size()); }
};

struct PairsRead {
  std::vector<PromptPair> pairs;        // empty if there are problems
  std::vector<OptionProblem> problems;  // fields as in the options: clean[2]
};

// Converts the pairs of options that CheckPatch accepts to tokens of the run's data, which must be
// loaded. A task without text is a problem. Other errors as SampledDataOf's.
absl::StatusOr<PairsRead> ReadPairs(const PatchOptions& options, const RunConfig& config);

// Returns the number of places at which activations are replaced, one after the other.
int64_t PatchedPlaces(PatchedPart part, const ModelConfig& model);

// Returns the rows of a batch of prompts of this length: one for all positions together, and one
// for each of `positions` that is patched alone, or fewer if a piece can't hold them.
int64_t PatchedRows(int64_t length, int64_t positions, double parameters);

// The functions of patch's row in the table of kinds.
std::vector<OptionProblem> CheckPatch(const AnalysisOptions& options, const ModelConfig& model);
absl::StatusOr<std::vector<OptionProblem>> CheckPairs(const AnalysisOptions& options,
                                                      const RunConfig& config);
AnalysisCost PatchCost(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                       size_t subjects);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_PROMPT_PAIRS_H_
