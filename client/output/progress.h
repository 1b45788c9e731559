// Prints the progress of an experiment where there is no live screen: a line for each tenth of the
// work, after 10 minutes without one, and for each run that fails.
#ifndef ABLATE_CLIENT_OUTPUT_PROGRESS_H_
#define ABLATE_CLIENT_OUTPUT_PROGRESS_H_

#include <string>

#include "ablate/v1/experiment.pb.h"
#include "client/output/status_line.h"

namespace ablate::client {

struct ProgressOptions {
  std::string name;  // of the experiment, as shown
  StatusLineOptions line;
};

// Not thread-safe.
class Progress {
 public:
  explicit Progress(ProgressOptions options);

  // Takes an event with a snapshot. The first is the state when watching began.
  void Update(const v1::ExperimentEvent& event);
  // Draws the last state and leaves the line.
  void Finish();

  // Such as "42/180 ended, 2 running, 1 failed   2,315 steps/s   ETA 1 min 20 s   eval/loss 2.41 of
  // pre-s1", the newest value and its cell.
  std::string Line() const;

 private:
  // Returns the experiment's name and Line().
  std::string Text() const;

  const ProgressOptions options_;
  StatusLine line_;
  v1::ExperimentEvent event_;  // the newest
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_PROGRESS_H_
