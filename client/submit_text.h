// What `submit` says about an experiment that was created, or would be.
#ifndef ABLATE_CLIENT_SUBMIT_TEXT_H_
#define ABLATE_CLIENT_SUBMIT_TEXT_H_

#include <string>

#include "ablate/v1/experiment.pb.h"

namespace ablate::client {

// `names-norm-7f3k   3 placement × 5 lr × 12 seeds = 180 runs (0 reused)   about 6 s, 40 MB`.
std::string Headline(const v1::CreateExperimentResponse& response);

// A table of the combinations of settings: parameters, cells and reused cells, which are counted
// only if the answer has all cells.
std::string GridTable(const v1::CreateExperimentResponse& response, int width);

// Which cells are stored but for their evaluation or checkpoints; empty if none is.
std::string EvaluationText(const v1::CreateExperimentResponse& response);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_TEXT_H_
