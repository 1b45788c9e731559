// Counts how far an experiment is, once for everybody who watches it by snapshots.
#ifndef ABLATE_SERVER_SERVICE_SNAPSHOTS_H_
#define ABLATE_SERVER_SERVICE_SNAPSHOTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/analysis/metrics.h"
#include "server/schedule/growth_rate.h"
#include "server/schedule/scheduler.h"
#include "server/service/watch_stream.h"
#include "storage/records.h"

namespace ablate::service {

struct Backend;

// The cells of an experiment as last seen, and what follows from them. No clock of its own: `now`
// is monotonic time. Not thread-safe.
class CellTally {
 public:
  explicit CellTally(const v1::ExperimentSpec& spec);

  // Takes a cell and the summaries of its run.
  void Update(const storage::CellRecord& cell, const storage::RunSummaries& summaries);
  // Takes the values of the primary metric if it is a number of analyses, which no summary has.
  void UseNumbers(const analysis::AnalysisMetrics& numbers);
  const std::string& primary() const { return primary_; }

  v1::Snapshot MakeSnapshot(const std::vector<schedule::WorkerInfo>& workers, absl::Duration now);

 private:
  using Labels = std::map<std::string, std::string>;  // axis → label
  struct Combination {
    Labels labels;
    Labels fixed;        // labels of the axes that aren't tuned
    size_t setting = 0;  // equal for equal fixed labels
  };
  struct Cell {
    std::string name;
    size_t run = 0;
    size_t combination = 0;
    storage::RunState state = storage::RunState::kQueued;
    std::optional<double> value;  // of the primary metric, finite or not
  };
  struct Run {
    std::string name;
    uint32_t step = 0;
    uint32_t steps = 0;
    storage::RunState state = storage::RunState::kQueued;
    size_t cell = 0;  // the first that has it

    // Returns true if nobody knows how many steps it will make, as for a program that hasn't
    // reported it or makes more than it reported.
    bool is_open() const;
    int64_t left() const;  // steps; 0 if they aren't known
  };

  size_t CombinationOf(const storage::CellRecord& cell);
  double Fraction() const;
  void AddLanes(const std::vector<schedule::WorkerInfo>& workers, v1::Snapshot* snapshot);
  void AddTimes(absl::Duration now, v1::Snapshot* snapshot);
  void AddSettings(v1::Snapshot* snapshot) const;

  const std::string primary_;
  const bool higher_is_better_;
  std::vector<bool> tuned_;  // by axis
  std::vector<Cell> cells_;  // in grid order
  std::vector<Combination> combinations_;
  std::map<Labels, size_t> combination_of_;
  std::map<Labels, size_t> settings_;  // by fixed labels
  std::vector<Run> runs_;
  std::map<std::string, size_t> run_of_;                            // by name
  std::vector<std::string> on_lanes_;                               // runs, each in its place
  schedule::GrowthRate made_{absl::Seconds(20), absl::Seconds(1)};  // steps of all runs
  v1::CellValue newest_;
};

// Reads the store for all watchers of an experiment. Thread-safe; never waits for another watcher's
// reading.
class WatchedExperiment {
 public:
  WatchedExperiment(Backend* backend, std::string id) : backend_(backend), id_(std::move(id)) {}

  struct Reading {
    std::shared_ptr<const v1::ExperimentEvent> event;  // the newest; null before the first
    NextRound next;
  };
  // Counts the changes since the last reading if it is time for it. Blocks on the store.
  absl::StatusOr<Reading> Read(absl::Duration now);

 private:
  // Takes a page of changes; returns true if there are more.
  absl::StatusOr<bool> ReadChanges();
  absl::Status ReadNumbers(const storage::AnalysisCounts& analyses);
  // Returns a newer event; null if there are more changes first.
  absl::StatusOr<std::shared_ptr<const v1::ExperimentEvent>> Count(
      const storage::ExperimentRecord& record, const std::string& stalled, absl::Duration now);

  Backend* const backend_;
  const std::string id_;

  // Owned by the caller that set reading_.
  std::optional<CellTally> tally_;
  bool by_analysis_ = false;    // the primary metric is a number of analyses
  uint32_t analyses_done_ = 0;  // at the last ReadNumbers
  uint64_t seen_ = 0;           // change number of the last cell

  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  Reading last_ ABSL_GUARDED_BY(mutex_);
  uint64_t change_ ABSL_GUARDED_BY(mutex_) = 0;  // of the store before the last reading
  std::string stalled_ ABSL_GUARDED_BY(mutex_);
  absl::Duration due_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

// The experiments that are watched now. Thread-safe.
class WatchedExperiments {
 public:
  std::shared_ptr<WatchedExperiment> Find(Backend* backend, const std::string& id);

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<WatchedExperiment>> experiments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_SNAPSHOTS_H_
