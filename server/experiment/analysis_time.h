// Guesses how long an analysis takes from the operations that its kind computes.
#ifndef ABLATE_SERVER_EXPERIMENT_ANALYSIS_TIME_H_
#define ABLATE_SERVER_EXPERIMENT_ANALYSIS_TIME_H_

#include <cstdint>
#include <string>

#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::spec {

// Analyses and samples of models with at least so many parameters go to a GPU, if there is one. A
// guess: smaller ones are analyzed soon enough on a core, and then their numbers don't depend on
// whether there is a GPU.
inline constexpr uint64_t kGpuAnalysisParameters = 10'000'000;

struct AnalysisTime {
  // Kind and trainer of its passes, and whether a GPU may compute it, such as
  // "loss_landscape/native/1" or "spectrum/torch/1/large". In a group, measured times are about
  // proportional to guessed ones.
  std::string group;
  double micros = 0;  // on one core
};

// Guesses the time of an analysis that reads so many tokens (MostTokens), of models like this one.
// `cost` is the whole cost, from CheckSubjects. Kinds without a model ignore `config`.
AnalysisTime GuessAnalysisTime(const engine::AnalysisKind& kind, const engine::AnalysisCost& cost,
                               uint64_t tokens, const engine::RunConfig& config);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_ANALYSIS_TIME_H_
