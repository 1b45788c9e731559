// Measures how far an experiment is from the events of its cells: the part of the work that is
// done, the speed, and the time that is left.
#ifndef ABLATE_CLIENT_OUTPUT_WORK_DONE_H_
#define ABLATE_CLIENT_OUTPUT_WORK_DONE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "ablate/v1/experiment.pb.h"
#include "absl/time/time.h"

namespace ablate::client {

// Not thread-safe.
class WorkDone {
 public:
  struct Change {
    bool is_new = false;     // the first event of the cell: its state when watching began
    bool had_ended = false;  // before the event
  };
  // Takes an event of a cell.
  Change Update(const v1::ExperimentEvent& event, absl::Time now);

  // Returns the part of the cells' work that is done, 0 to 1.
  double Fraction() const;
  // Returns the steps per second of all runs over the last seconds; 0 if too little is known.
  double StepsPerSecond() const;
  // Returns the time until all steps are made at this speed; infinite if unknown.
  absl::Duration TimeLeft() const;
  bool empty() const { return cells_.empty(); }

 private:
  struct RunProgress {
    uint32_t step = 0;
    uint32_t steps = 0;
    bool ended = false;
  };

  // Updates steps made and left by the event's run.
  void Count(const v1::ExperimentEvent& event, absl::Time now);

  uint64_t all_ = 0;                                    // cells
  std::map<std::string, RunProgress> runs_;             // by run: cells may share one
  std::map<std::string, double> cells_;                 // the fraction that is done of each
  double done_ = 0;                                     // sum of cells_
  std::deque<std::pair<absl::Time, int64_t>> samples_;  // steps made since watching began
  int64_t made_ = 0;
  int64_t remaining_ = 0;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_WORK_DONE_H_
