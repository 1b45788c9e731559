// Draws the live screen of an experiment as lines of text. Pure.
#ifndef ABLATE_CLIENT_OUTPUT_EXPERIMENT_SCREEN_H_
#define ABLATE_CLIENT_OUTPUT_EXPERIMENT_SCREEN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/time/time.h"
#include "client/output/screen_parts.h"

namespace ablate::client {

// A row of the leader board.
struct SettingRow {
  std::string setting;
  std::optional<double> mean;  // of the primary metric, over n seeds
  uint64_t n = 0;
  uint64_t seeds = 0;  // that it will have; 0: not shown
  uint64_t diverged = 0;
  std::string chosen;  // values of tuned axes
};

struct ExperimentView {
  std::string id;
  std::string question;
  std::string primary;  // metric of the leader board
  bool higher_is_better = false;
  v1::RunCounts counts;
  std::string analyses;            // their progress; empty if the experiment asks for none
  std::string stalled;             // the reason; empty unless stalled
  std::optional<absl::Time> lost;  // when the server was first missed; nothing if it answers
  std::string notice;              // why the watch waits, otherwise
  double fraction = 0;             // of the work that is done
  double steps_per_second = 0;
  absl::Duration time_left = absl::InfiniteDuration();  // infinite if unknown
  std::vector<LaneRow> lanes;
  std::vector<SettingRow> settings;
  bool ended = false;
  std::string verdict;  // on the ended experiment; empty if there is none
};

// Returns the screen in at most `width` columns and `height` lines; 0 stands for any number.
// Names, the question and titles are cut to fit, numbers never from 40 columns on.
std::vector<std::string> ExperimentScreen(const ExperimentView& view, int width, int height,
                                          absl::Time now);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_EXPERIMENT_SCREEN_H_
