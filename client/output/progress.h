// Prints the progress of an experiment where there is no live screen: a line for each tenth of the
// work, after 10 minutes without one, and for each run that fails.
#ifndef ABLATE_CLIENT_OUTPUT_PROGRESS_H_
#define ABLATE_CLIENT_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <string>

#include "ablate/v1/experiment.pb.h"
#include "client/output/status_line.h"
#include "client/output/work_done.h"

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

  // Takes an event of the experiment, and how many of its runs have lanes; others that a worker
  // holds don't count as running. The first event of a cell is its state when watching began.
  void Update(const v1::ExperimentEvent& event, uint64_t on_lanes = UINT64_MAX);
  // Draws the last state and leaves the line.
  void Finish();

  // Such as "42/180 ended, 2 running, 1 failed   2,315 steps/s   ETA 1 min 20 s   eval/loss 2.41 of
  // pre-s1", the newest value and its cell.
  std::string Line() const;

 private:
  // Updates the work that is done by the event's cell, and prints failures and tenths.
  void Advance(const v1::ExperimentEvent& event);
  // Returns the experiment's name and Line().
  std::string Text() const;

  const ProgressOptions options_;
  StatusLine line_;
  v1::RunCounts counts_;
  uint64_t on_lanes_ = 0;
  WorkDone work_;
  std::string latest_metric_;
  std::string analyses_;  // their progress; empty if the experiment asks for none
  std::string stalled_;   // the reason; empty unless stalled
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_PROGRESS_H_
