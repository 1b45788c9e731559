// Options of every kind of analysis, for tests that cover all kinds.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_EVERY_KIND_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_EVERY_KIND_H_

#include <string>
#include <variant>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/core/analyses/sampling.h"
#include "tests/engine/analyze/tagged_text.h"

namespace ablate::engine {

// Returns small options, at least one of each kind.
inline std::vector<AnalysisOptions> EveryKind() {
  LossLandscapeOptions landscape;
  landscape.directions = 1;
  landscape.radius = 1;
  landscape.points = 3;
  return {SpectrumOptions{},
          CkaOptions{},
          CkaOptions{{}, CkaEstimator::kBiased},
          ActivationsOptions{{}, true},
          WeightsOptions{true},
          CaptureOptions{{"block.0.output"}},
          landscape,
          HessianOptions{1, 3, 2, 2},
          GradientFlowOptions{},
          GradientAlignmentOptions{},
          NormJacobianOptions{},
          NormStatisticsOptions{{1}},
          NormResponseOptions{},
          AttentionOptions{},
          AttentionOptions{{}, "all"},
          InductionOptions{2, 2, 3},
          PatchOptions{{"ab", "cd"}, {"cb", "ad"}, {"a", "b"}, {"b", "c"}, PatchedPart::kResidual},
          PatchOptions{{"ab", "cd"}, {"cb", "ad"}, {"a", "b"}, {"b", "c"}, PatchedPart::kHead},
          RemoveOptions{RemovedPart::kHead},
          RemoveOptions{RemovedPart::kFeedForward, Replacement::kZero},
          TrajectoryOptions{2},
          LogitLensOptions{},
          LogitLensOptions{LensStatistics::kCached},
          PredictionsOptions{},
          RobustnessOptions{{}, {0.1, 0.2}, {0.1}, {0.1}, LevelUnit::kRelative, 2},
          ProbeOptions{},
          ProbeOptions{"upos", 0.5, Subtoken::kMean, 1, false}};
}

// Returns true if the inputs must be tagged sentences.
inline bool NeedsTagged(const AnalysisOptions& options) {
  const auto* const attention = std::get_if<AttentionOptions>(&options);
  return std::holds_alternative<ProbeOptions>(options) ||
         (attention != nullptr && !attention->dependency.empty());
}

// Returns true if the kind accepts the options for this model and its data.
inline bool Accepts(const AnalysisOptions& options, const RunConfig& config) {
  const AnalysisKind& kind = KindOf(options);
  if (!kind.check(options, config.model).empty()) return false;
  if (NeedsTagged(options) && !SampledDataOf(config).ok()) return false;
  return kind.check_data == nullptr || kind.check_data(options, config)->empty();
}

// Returns the letters of a run's data.
inline std::string LettersOf(const SampledData& data) {
  std::string letters;
  for (const char32_t point : *data.codec().alphabet) {
    if (point >= 'a' && point <= 'z') letters += static_cast<char>(point);
  }
  return letters;
}

// Returns inputs of about 60 tokens that the kind reads: held-out ones, or tagged sentences in
// characters of the run's data.
inline AnalysisInputs InputsOf(const AnalysisOptions& options, const RunConfig& config) {
  if (!NeedsTagged(options)) return {60, ""};
  AnalysisInputs inputs = AllOf(Conllu(DrawnSentences(20, LettersOf(*SampledDataOf(config)))));
  inputs.documents = 0;
  inputs.tokens = 60;
  return inputs;
}

// Returns as few copies of this model as the kind accepts.
inline std::vector<AnalysisSubject> LeastSubjects(const AnalysisKind& kind,
                                                  const AnalysisSubject& subject) {
  return std::vector<AnalysisSubject>(kind.least_subjects, subject);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_EVERY_KIND_H_
