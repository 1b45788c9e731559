// Guesses how long an analysis takes from the operations that its kind computes.
#ifndef ABLATE_SERVER_SPEC_ANALYSIS_TIME_H_
#define ABLATE_SERVER_SPEC_ANALYSIS_TIME_H_

#include <string>

#include "ablate/v1/analysis_options.pb.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::spec {

struct AnalysisTime {
  // Its kind and what computes its passes, such as "loss_landscape/native". In a group, measured
  // times are about proportional to guessed ones.
  std::string group;
  double micros = 0;  // of one core
};

// Guesses the time of an analysis with these resolved inputs, of models like this one; `cost` is
// that of all of it, as CheckSubjects has it. A kind that is of no model ignores `config`.
AnalysisTime GuessAnalysisTime(const engine::AnalysisKind& kind, const engine::AnalysisCost& cost,
                               const v1::AnalysisInputs& inputs, const engine::RunConfig& config);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_ANALYSIS_TIME_H_
