// Gathers the state of an experiment from the server's answers and events, for its live screen.
#ifndef ABLATE_CLIENT_OUTPUT_EXPERIMENT_STATE_H_
#define ABLATE_CLIENT_OUTPUT_EXPERIMENT_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "ablate/v1/run.pb.h"
#include "ablate/v1/worker.pb.h"
#include "absl/time/time.h"
#include "client/output/experiment_screen.h"
#include "client/output/work_done.h"

namespace ablate::client {

// Not thread-safe.
class ExperimentState {
 public:
  explicit ExperimentState(const v1::Experiment& experiment);

  // Takes the cells; before the first event.
  void SetCells(const v1::ListRunsResponse& rows);
  // Takes an event, which also shows that the server answers.
  void Update(const v1::ExperimentEvent& event, absl::Time now);
  // Takes the workers, which tell which runs have a lane: a worker's runs are in the order in which
  // its lanes take them.
  void SetWorkers(const v1::ListWorkersResponse& workers);
  // Takes the first part of a run's loss, which events don't repeat.
  void SetCurve(const v1::Series& series);
  // Returns the runs on lanes whose first part is missing, and counts on it to be set.
  std::vector<std::string> TakeRunsWithoutCurve();
  // Returns the number of runs on lanes, by the last list of workers; as many as may be before one.
  uint64_t CountOnLanes() const;
  // Records why the watch waits: the server is away since `lost`, or `notice`.
  void SetWaiting(std::optional<absl::Time> lost, const std::string& notice);
  // Takes the ended experiment; the comparison replaces the leader board. Null if there is none.
  void End(const v1::Experiment& experiment, const v1::Comparison* comparison);

  ExperimentView View();

 private:
  // A combination of all axes: cells that differ by seed.
  struct Combination {
    size_t setting = 0;  // place on the leader board
    std::string chosen;  // its labels of tuned axes
    uint64_t cells = 0;
    uint64_t n = 0;  // cells that are DONE and have a value
    double sum = 0;
    uint64_t diverged = 0;
  };
  struct CellResult {
    size_t combination = 0;
    v1::RunState::Value state = v1::RunState::unspecified;
    double value = 0;
    bool has_value = false;
  };
  // A run that a worker holds.
  struct OpenRun {
    std::string cell;
    uint32_t step = 0;
    uint32_t steps = 0;
    uint64_t granted = 0;    // order of the grants that were seen
    uint32_t seen_from = 0;  // the step at which it was first seen
    std::vector<double> losses;
  };

  // Adds the cell's result to its combination, or takes it away again.
  void Count(const CellResult& cell, int sign);
  void SetResult(const std::string& cell, v1::RunState::Value state, const double* value);
  void UpdateOpenRun(const v1::ExperimentEvent& event);
  std::vector<std::string> RunsOnLanes() const;
  // Keeps runs in the rows that they have, and gives others the free rows.
  void FillSlots();
  std::vector<SettingRow> Settings() const;

  const v1::ExperimentSpec spec_;
  ExperimentView view_;  // without lanes and settings
  WorkDone work_;
  std::map<std::string, CellResult> cells_;  // by name
  std::vector<Combination> combinations_;
  std::vector<std::string> settings_;  // of the leader board, in grid order
  std::vector<SettingRow> final_settings_;
  std::map<std::string, OpenRun> open_;    // by run
  std::set<std::string> asked_;            // open runs whose curve was asked for
  std::set<std::string> ended_or_queued_;  // runs that a list of workers may still name
  std::vector<std::string> slots_;         // runs by row of the screen
  uint64_t grants_ = 0;
  v1::ListWorkersResponse workers_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_EXPERIMENT_STATE_H_
