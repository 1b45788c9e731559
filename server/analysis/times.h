// Predicts how long analyses take, from guesses and from the times of earlier ones on this server.
#ifndef ABLATE_SERVER_ANALYSIS_TIMES_H_
#define ABLATE_SERVER_ANALYSIS_TIMES_H_

#include "server/experiment/experiment_analyses.h"
#include "storage/records.h"

namespace ablate::analysis {

struct ExpectedTime {
  double micros = 0;  // of one analysis on one core
  // True if at least a few of the group's analyses were measured here, and the largest guess isn't
  // much larger than they. Otherwise the time is a guess.
  bool measured = false;
};

// Scales the mean guess by the measured times of the same group on this server, if there are a few.
ExpectedTime ExpectTime(const spec::GroupTime& guess, const storage::AnalysisTimes& made);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_TIMES_H_
