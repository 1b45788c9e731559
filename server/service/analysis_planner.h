// Asks for the analyses of experiments' specs, once all runs of an experiment have ended: until
// then nobody knows which values are chosen.
#ifndef ABLATE_SERVER_SERVICE_ANALYSIS_PLANNER_H_
#define ABLATE_SERVER_SERVICE_ANALYSIS_PLANNER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/service/services.h"

namespace ablate::service {

// Thread-safe. One thread asks, in the way in which a client would: what is stored already is
// reused, and a server that dies in between asks again.
class AnalysisPlanner {
 public:
  // `backend` outlives this.
  explicit AnalysisPlanner(Backend* backend);
  ~AnalysisPlanner();
  AnalysisPlanner(const AnalysisPlanner&) = delete;
  AnalysisPlanner& operator=(const AnalysisPlanner&) = delete;

  // Takes up what an earlier server left.
  void Start();
  // After that nothing more is asked for.
  void Stop();
  // There may be a new experiment, or one whose runs live again.
  void Expect();
  // Something was committed.
  void Notify();

 private:
  void Loop();
  // Whether something may be left to plan later.
  bool PlanAll();
  class Failures;

  // Errors: those that trying again may mend, and CANCELLED if the experiment is no longer active.
  absl::Status Plan(const storage::UnplannedExperiment& unplanned);
  absl::Status Ask(const v1::CreateAnalysisRequest& request, const std::string& experiment,
                   Failures* failures);
  // Nothing of it can be asked for.
  absl::Status GiveUp(const storage::UnplannedExperiment& experiment, const absl::Status& why);
  bool stopping() const;

  Backend* const backend_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool expects_ ABSL_GUARDED_BY(mutex_) = false;   // some experiment may wait to be planned
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;     // something changed since the last round began
  bool expected_ ABSL_GUARDED_BY(mutex_) = false;  // likewise Expect was called
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ANALYSIS_PLANNER_H_
