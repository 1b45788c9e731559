// Runs a command of the server's owner when something needs a person: a failed run, an experiment
// that has ended, a disk that fills, pilots that fail.
#ifndef ABLATE_SERVER_SERVICE_ALERTS_H_
#define ABLATE_SERVER_SERVICE_ALERTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/schedule/scheduler_thread.h"
#include "storage/store.h"

namespace ablate::service {

struct Alert {
  // run_failed, experiment_ended, experiment_cancelled, disk_low, stalled or pilots_fail
  std::string kind;
  std::string text;  // a sentence
  // ID, name and owner; empty if it isn't about an experiment.
  std::string experiment, name, owner;
};

// Returns the alert as one line of JSON. Its keys are Alert's fields; the kind's is "alert".
std::string AlertLine(const Alert& alert);

// The facts that alerts depend on, as of one time.
struct AlertFacts {
  // Those that are active, and those that have ended since the last facts. Others haven't changed.
  std::vector<storage::ExperimentNews> experiments;
  std::map<std::string, std::string> failing_clusters;  // why, by NAME@USER
  std::string stalled;                                  // why nothing can be stored; or empty
  uint64_t free_bytes = UINT64_MAX;
};

// Finds what is new in facts. Not thread-safe.
class AlertRules {
 public:
  // Returns an alert for each experiment that has ended or, while it goes on, has its first failed
  // run, and for each trouble that has begun, since the last facts. The first facts cause no alert
  // about experiments.
  std::vector<Alert> Next(const AlertFacts& facts);

  static constexpr uint64_t kLowBytes = 2'000'000'000;
  static constexpr uint64_t kEnoughBytes = 3'000'000'000;  // room for another alert to follow

 private:
  struct Known {
    bool failed = false, ended = false;
  };
  bool began_ = false;
  std::map<std::string, Known> known_;  // by experiment
  std::set<std::string> failing_clusters_;
  bool stalled_ = false, low_ = false;
};

// Reads the facts every `every` on a thread of its own, and has /bin/sh run the command for each
// alert, one at a time, with AlertLine as standard input, for 30 s at most. A command that fails is
// logged; its alert isn't repeated. Private experiments cause no alert.
class Alerts {
 public:
  // The pointers must outlive it.
  Alerts(std::string command, storage::Store* store, schedule::SchedulerThread* scheduler,
         absl::Duration every = absl::Seconds(10));
  // Waits for a command in progress; alerts after it are dropped.
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

 private:
  void Loop(absl::StatusOr<AlertFacts> facts);
  void Send(const std::vector<Alert>& alerts);
  absl::StatusOr<AlertFacts> ReadFacts();
  bool stopping();

  const std::string command_;
  storage::Store* const store_;
  schedule::SchedulerThread* const scheduler_;
  const absl::Duration every_;
  // Used by the thread alone.
  AlertRules rules_;
  storage::Micros since_ = 0;     // earlier ends are known
  uint64_t change_ = UINT64_MAX;  // of the store when the experiments were read
  absl::Status error_;            // of the last reading
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ALERTS_H_
