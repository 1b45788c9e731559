// Defines the perturbations of `robustness` and their levels, checks them, and estimates the cost.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_ROBUSTNESS_LEVELS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_ROBUSTNESS_LEVELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::engine {

enum class Perturbation { kReplaceWords, kEmbeddingNoise, kFgsm, kL2 };

struct PerturbationInfo {
  absl::string_view name;  // of its option
  std::vector<double> RobustnessOptions::*levels;
  Perturbation perturbation;
  bool is_random;
};

inline constexpr PerturbationInfo kPerturbations[] = {
    {"replace_words", &RobustnessOptions::replace_words, Perturbation::kReplaceWords, true},
    {"embedding_noise", &RobustnessOptions::embedding_noise, Perturbation::kEmbeddingNoise, true},
    {"fgsm", &RobustnessOptions::fgsm, Perturbation::kFgsm, false},
    {"l2", &RobustnessOptions::l2, Perturbation::kL2, false},
};

// Returns the number of passes at each level.
uint32_t DrawsOf(const PerturbationInfo& info, const RobustnessOptions& options);

// Returns how numbers name a level: fgsm@0.1.
std::string LevelName(const PerturbationInfo& info, double level);

// Returns true if the model's task has text, and false if its tokens are numbers, each of which is
// a class. The tasks without text are those whose loss reads the last position only.
bool HasText(const ModelConfig& model);

// Sums of each level and draw, and of the input as it is.
enum RobustnessSum {
  kComparedLoss,     // losses of the targets that are compared
  kUnperturbedLoss,  // losses of the same targets in the input as it is
  kComparedCorrect,
  kComparedTargets,
  kTotalLoss,  // losses of all targets
  kTotalTargets,
  kMovedSequences,  // sequences whose gradient isn't 0
  kRobustnessSums,
};

// The functions of robustness's row in the table of kinds.
std::vector<OptionProblem> CheckRobustness(const AnalysisOptions& options,
                                           const ModelConfig& model);
AnalysisCost RobustnessCost(const AnalysisOptions& options, const RunConfig& config,
                            uint64_t tokens, size_t subjects);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_ROBUSTNESS_LEVELS_H_
