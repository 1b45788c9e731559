// Draws the live screen of an experiment, by the server's snapshots, as lines of text. Pure.
#ifndef ABLATE_CLIENT_OUTPUT_EXPERIMENT_SCREEN_H_
#define ABLATE_CLIENT_OUTPUT_EXPERIMENT_SCREEN_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "absl/time/time.h"

namespace ablate::client {

struct ExperimentView {
  v1::Experiment experiment;
  v1::ExperimentEvent event;       // the newest
  std::optional<absl::Time> lost;  // when the server was first missed; nothing if it answers
  std::string notice;              // why the watch waits, otherwise
  bool ended = false;
  v1::Comparison comparison;  // of the ended experiment; empty if there is none
};

// Returns the screen in at most `width` columns and `height` lines; 0 stands for any number.
// Names, the question and titles are cut to fit, numbers never from 40 columns on.
std::vector<std::string> ExperimentScreen(const ExperimentView& view, int width, int height,
                                          absl::Time now);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_EXPERIMENT_SCREEN_H_
