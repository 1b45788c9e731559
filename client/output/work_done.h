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

// Measures how fast a count grows. Starts again if the count falls. Not thread-safe.
class GrowthRate {
 public:
  // Looks at the last `window`, and at no time shorter than `least`.
  GrowthRate(absl::Duration window, absl::Duration least) : window_(window), least_(least) {}

  void Add(absl::Time now, int64_t count);
  // Returns the growth per second; 0 if too little is known.
  double PerSecond() const;

 private:
  absl::Duration window_, least_;
  std::deque<std::pair<absl::Time, int64_t>> samples_;
};

// Not thread-safe.
class WorkDone {
 public:
  WorkDone();

  struct Change {
    bool is_new = false;     // the first event of the cell: its state when watching began
    bool had_ended = false;  // before the event
  };
  // Takes an event of a cell.
  Change Update(const v1::ExperimentEvent& event, absl::Time now);

  // Returns the part of the cells' work that is done, 0 to 1.
  double Fraction() const;
  // Returns the steps per second of all runs over the last seconds; 0 if too little is known.
  double StepsPerSecond() const { return rate_.PerSecond(); }
  // Returns those of a run that is training, by its name.
  double StepsPerSecond(const std::string& run) const;
  // Returns the time until all steps are made; infinite if unknown. A run whose speed is known
  // takes at least the time that it needs at that speed, because runs of one grid can differ by
  // far; the others have the speed of all.
  absl::Duration TimeLeft() const;
  bool empty() const { return cells_.empty(); }

 private:
  struct RunProgress {
    uint32_t step = 0;
    uint32_t steps = 0;
    bool ended = false;
  };

  struct TrainingRun {
    int64_t left = 0;
    GrowthRate rate;
  };

  // Updates steps made and left by the event's run.
  void Count(const v1::ExperimentEvent& event, absl::Time now);

  uint64_t all_ = 0;                             // cells
  std::map<std::string, RunProgress> runs_;      // by run: cells may share one
  std::map<std::string, TrainingRun> training_;  // by run: those that have made steps
  std::map<std::string, double> cells_;          // the fraction that is done of each
  double done_ = 0;                              // sum of cells_
  int64_t made_ = 0;                             // steps since watching began
  GrowthRate rate_;                              // of made_
  int64_t remaining_ = 0;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_WORK_DONE_H_
