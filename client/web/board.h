// Makes the parts of an experiment's page that show its progress, again with each snapshot.
#ifndef ABLATE_CLIENT_WEB_BOARD_H_
#define ABLATE_CLIENT_WEB_BOARD_H_

#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/run.pb.h"
#include "base/markup.h"

namespace ablate::web {

// Part and state of the training, time left, counts, and what blocks it.
html::Html ProgressPart(const v1::Experiment& experiment, const v1::ExperimentEvent& event);

// The settings in grid order, never ranked, with mean, interval, n and chosen values; marked as
// preliminary until the last run has ended.
html::Html BoardPart(const v1::Comparison& comparison);

// The runs that lanes train.
html::Html LanesPart(const v1::ExperimentEvent& event);

// Runs that FAILED, each with its reason and the last lines of its log.
html::Html FailuresPart(const v1::ListRunsResponse& failed);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_BOARD_H_
