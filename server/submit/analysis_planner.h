// Requests the analyses of experiments' specs once all runs of an experiment have ended: only then
// the selected values are known.
#ifndef ABLATE_SERVER_SUBMIT_ANALYSIS_PLANNER_H_
#define ABLATE_SERVER_SUBMIT_ANALYSIS_PLANNER_H_

#include <functional>
#include <string>
#include <thread>

#include "ablate/v1/analysis.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "storage/store.h"

namespace ablate::submit {

// Plans analyses on one thread and requests them as a client would, so that stored ones are reused
// and a restarted server can repeat the requests. Thread-safe.
class AnalysisPlanner {
 public:
  // Creates an analysis that an experiment asks for, on behalf of its owner, like CreateAnalysis.
  // Blocks on the store.
  using Create =
      std::function<absl::Status(const v1::CreateAnalysisRequest& request, const std::string& owner,
                                 const std::string& experiment)>;

  // `store` must outlive this object.
  AnalysisPlanner(storage::Store* store, Create create);
  ~AnalysisPlanner();
  AnalysisPlanner(const AnalysisPlanner&) = delete;
  AnalysisPlanner& operator=(const AnalysisPlanner&) = delete;

  // Starts the thread and takes over the work of an earlier server.
  void Start();
  // Stops; no analysis is requested afterwards.
  void Stop();
  // Announces that there may be a new experiment, or one whose runs were queued again.
  void Expect();
  // Announces a commit.
  void Notify();

 private:
  void Loop();
  // Returns true if something may be left to plan later.
  bool PlanAll();
  class Failures;

  // Plans an experiment. Returns errors for which a retry may help, and CANCELLED if the experiment
  // isn't active any more.
  absl::Status Plan(const storage::UnplannedExperiment& unplanned);
  absl::Status Ask(const v1::CreateAnalysisRequest& request, const std::string& experiment,
                   Failures* failures);
  // Records that nothing of it can be requested.
  absl::Status GiveUp(const storage::UnplannedExperiment& experiment, const absl::Status& why);
  bool stopping() const;

  storage::Store* const store_;
  const Create create_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool expects_ ABSL_GUARDED_BY(mutex_) = false;  // some experiment may wait for planning
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // something has changed since the last round began
  bool expected_ ABSL_GUARDED_BY(mutex_) = false;  // Expect was called since then
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_ANALYSIS_PLANNER_H_
