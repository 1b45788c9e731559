// Expects how long analyses take, from guesses and from the times of those that were made here.
#ifndef ABLATE_SERVER_ANALYSIS_TIMES_H_
#define ABLATE_SERVER_ANALYSIS_TIMES_H_

#include "server/spec/experiment_analyses.h"
#include "storage/records.h"

namespace ablate::analysis {

struct ExpectedTime {
  double micros = 0;  // of one analysis, on one core
  // The group's analyses were measured here, a few at least and none much smaller than the largest
  // guess. Otherwise the time is a guess.
  bool measured = false;
};

// Scales the mean guess by what the analyses of the same group took here, if a few were made.
ExpectedTime ExpectTime(const spec::GroupTime& guess, const storage::AnalysisTimes& made);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_TIMES_H_
