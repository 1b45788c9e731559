// Shows the progress of an experiment: one line that is rewritten on a terminal. Elsewhere, a line
// for each tenth of the work, after 10 minutes without one, and for each run that fails.
#ifndef ABLATE_CLIENT_OUTPUT_PROGRESS_H_
#define ABLATE_CLIENT_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "ablate/v1/experiment.pb.h"
#include "absl/time/time.h"
#include "client/output/status_line.h"

namespace ablate::client {

struct ProgressOptions {
  std::string name;     // of the experiment, as shown
  std::string primary;  // the metric that is shown
  StatusLineOptions line;
};

// Not thread-safe.
class Progress {
 public:
  explicit Progress(ProgressOptions options);

  // Takes an event of the experiment. The first event of a cell is its state when watching began.
  void Update(const v1::ExperimentEvent& event);
  // Draws the last state and leaves the line.
  void Finish();

  // Such as "42/180 ended, 2 training, 1 failed   2,315 steps/s   ETA 1 min 20 s   eval/loss 2.41".
  std::string Line() const;

 private:
  struct RunProgress {
    uint32_t step = 0;
    uint32_t steps = 0;
    bool ended = false;
  };

  // Updates steps made and left by the event's run.
  void Count(const v1::ExperimentEvent& event);
  // Updates the work that is done by the event's cell, and prints failures and tenths.
  void Advance(const v1::ExperimentEvent& event);
  // Returns the experiment's name and Line().
  std::string Text() const;
  // Returns steps per second over the last seconds; 0 if too little is known.
  double Rate() const;

  const ProgressOptions options_;
  StatusLine line_;
  v1::RunCounts counts_;
  std::map<std::string, RunProgress> runs_;             // by run: cells may share one
  std::map<std::string, double> cells_;                 // the fraction that is done of each
  double done_ = 0;                                     // sum of cells_
  std::deque<std::pair<absl::Time, int64_t>> samples_;  // steps made since watching began
  int64_t made_ = 0;
  int64_t remaining_ = 0;
  std::string latest_metric_;
  std::string analyses_;  // their progress; empty if the experiment asks for none
  std::string stalled_;   // the reason; empty unless stalled
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_PROGRESS_H_
