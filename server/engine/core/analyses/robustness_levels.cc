#include "server/engine/core/analyses/robustness_levels.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/prediction_cost.h"

namespace ablate::engine {

uint32_t DrawsOf(const PerturbationInfo& info, const RobustnessOptions& options) {
  return info.is_random ? options.draws : 1;
}

std::string LevelName(const PerturbationInfo& info, double level) {
  return absl::StrCat(info.name, "@", text::ShortestDecimal(level));
}

bool HasText(const ModelConfig& model) { return model.loss == LossPositions::kAll; }

RobustnessOptions LevelsOf(const RobustnessOptions& options, const ModelConfig& model) {
  RobustnessOptions used = options;
  const bool none =
      std::all_of(std::begin(kPerturbations), std::end(kPerturbations),
                  [&](const PerturbationInfo& info) { return (options.*info.levels).empty(); });
  if (none) (HasText(model) ? used.replace_words : used.embedding_noise) = {0.1, 0.2, 0.4};
  return used;
}

std::vector<OptionProblem> CheckRobustness(const AnalysisOptions& options,
                                           const ModelConfig& model) {
  const auto& robustness = std::get<RobustnessOptions>(options);
  std::vector<OptionProblem> problems;
  if (!robustness.replace_words.empty() && !HasText(model)) {
    problems.push_back({"replace_words", "", "the tokens of the task are numbers, not text",
                        "a run of a documents or text task, or no levels of replace_words"});
  }
  for (const PerturbationInfo& info : kPerturbations) {
    const std::vector<double>& levels = robustness.*info.levels;
    for (auto level = levels.begin(); level != levels.end(); ++level) {
      if (std::find(levels.begin(), level, *level) == level) continue;
      problems.push_back({absl::StrCat(info.name, "[", level - levels.begin(), "]"),
                          text::ShortestDecimal(*level), "it is named twice", "each level once"});
    }
  }
  return problems;
}

AnalysisCost RobustnessCost(const AnalysisOptions& options, const RunConfig& config,
                            uint64_t tokens, size_t) {
  constexpr double kGradientPasses = 3;
  const ModelConfig& model = config.model;
  const RobustnessOptions used = LevelsOf(std::get<RobustnessOptions>(options), model);
  uint64_t passes = 1, values = 0, numbers = 1;
  for (const PerturbationInfo& info : kPerturbations) {
    const uint64_t levels = (used.*info.levels).size();
    passes += levels * DrawsOf(info, used);
    values += levels * (1 + DrawsOf(info, used));
    numbers += 2 * levels;  // that sequences have
  }
  const bool gradient = !used.fgsm.empty() || !used.l2.empty();
  const double targets = TargetsAmong(tokens, model);
  const uint64_t classes = HasText(model) ? 0 : static_cast<uint64_t>(model.vocabulary);
  AnalysisCost cost;
  cost.forwards = static_cast<double>(passes) + (gradient ? kGradientPasses : 0);
  const uint64_t batch = std::max(kPieceTokens, static_cast<uint64_t>(model.context));
  cost.state_bytes = 8 * (passes * (kRobustnessSums + 3 * classes) +
                          std::min(static_cast<uint64_t>(targets), batch));
  // At most as many sequences as tokens.
  cost.state_bytes += 24 * passes * tokens;
  cost.array_bytes = 8 * values + 16 * numbers * tokens;
  cost.others = static_cast<double>(passes) * ProbabilityOperations(targets, model);
  return cost;
}

}  // namespace ablate::engine
