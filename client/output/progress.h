// Shows the progress of an experiment: one line that is rewritten on a terminal. Elsewhere, a line
// when another tenth of the runs has ended, every 30 s, and for each run that fails.
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

  // An event of the experiment. The first one of a cell is where it stood when watching began.
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

  // Takes account of where the event's run is now.
  void Count(const v1::ExperimentEvent& event);
  // Prints that the event's cell failed, unless the line is live.
  void TellFailure(const v1::ExperimentEvent& event);
  // Returns true if another tenth of the runs has ended since the last call.
  bool AnotherTenth();
  // Line(), behind the experiment's name.
  std::string Text() const;
  // Steps a second over the last seconds; 0 if too little is known.
  double Rate() const;

  const ProgressOptions options_;
  StatusLine line_;
  v1::RunCounts counts_;
  std::map<std::string, RunProgress> runs_;  // by run: cells may share one
  std::map<std::string, v1::RunState::Value> cells_;
  std::deque<std::pair<absl::Time, int64_t>> samples_;  // steps made since watching began
  int64_t made_ = 0;
  int64_t remaining_ = 0;
  uint64_t ended_tenths_ = 0;
  std::string latest_metric_;
  std::string analyses_;  // how far they are; empty if the experiment asks for none
  std::string stalled_;   // why; empty while it goes on
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_PROGRESS_H_
