// Runs stored analyses: passes open ones to the worker for analyses, stores the results, and wakes
// watchers.
#ifndef ABLATE_SERVER_ANALYSIS_RUNNER_H_
#define ABLATE_SERVER_ANALYSIS_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/rpc/blob_pins.h"
#include "server/rpc/live_streams.h"
#include "server/schedule/analyses.h"
#include "storage/store.h"

namespace ablate::analysis {

// One thread does everything that waits for the store, in order of arrival, so that the stored
// state of an analysis is never older than the next action on it. Thread-safe.
class AnalysisRunner {
 public:
  // Number of consecutive worker ends, without a state saved between, that fail an analysis. After
  // the first one it runs alone, so that the others are its own.
  static constexpr int kMaxFailures = 3;

  // `watches` are woken whenever an analysis has changed. The pointers must outlive this object.
  AnalysisRunner(storage::Store* store, schedule::Analyses* analyses, rpc::BlobPins* pins,
                 rpc::LiveStreams* watches);
  // Leaves open analyses open; the next server continues them.
  ~AnalysisRunner();
  AnalysisRunner(const AnalysisRunner&) = delete;
  AnalysisRunner& operator=(const AnalysisRunner&) = delete;

  // Starts the thread and takes over analyses that an earlier server left open.
  void Start();
  // Stops; no analysis ends afterwards.
  void Stop();
  // Runs an analysis that is stored as QUEUED. Does nothing if it is running already or isn't open.
  void Submit(const std::string& id);
  // Ends an analysis at its worker after it was stored as CANCELLED or removed.
  void Cancel(const std::string& id);
  // Returns the progress, 0 to 1, newer than the stored one; the stored one if it isn't running.
  double Progress(const storage::AnalysisRecord& analysis) const;
  // Returns the ids at schedule::Analyses of the running ones, until their results are stored.
  std::vector<std::string> Requests() const;

 private:
  // An analysis in progress.
  struct Open {
    std::string request;   // its id at schedule::Analyses; empty until it has one
    uint64_t attempt = 0;  // of this request; messages about others are too late
    double progress = 0;
    storage::Micros busy = 0;  // worker time that isn't stored yet
    int failures = 0;          // worker ends since its last saved state
  };

  void Loop();
  void Post(std::function<void()> work);
  // The following functions run on the thread.
  void SubmitOpen();
  // Starts it unless it is running.
  void TakeUp(const std::string& id);
  void Make(const std::string& id);
  void OnBegun(const std::string& id, uint64_t attempt);
  void OnSaved(const std::string& id, uint64_t attempt, const worker::v1::AnalysisSaved& saved,
               bool on_gpu);
  void OnRestarted(const std::string& id, uint64_t attempt);
  void OnDone(const std::string& id, uint64_t attempt,
              const absl::StatusOr<worker::v1::AnalysisResult>& result);
  // Cancels it if its subject was deleted, because nobody wants it then.
  void CancelIfRemoved(const std::string& id);
  void Finish(const std::string& id, const worker::v1::ComputationResult& result);
  void Fail(const std::string& id, const absl::Status& why);
  // Returns true if it must be restarted after its worker ended.
  bool TriesAgain(const std::string& id);
  void Save(const std::string& id, const storage::AnalysisProgress& progress);
  // Does a write that is worth waiting for; retries while the disk is full.
  absl::Status Store(const std::function<absl::Status()>& write);
  // Removes an ended analysis from memory.
  void Forget(const std::string& id);
  void Unpin(const std::string& id, const std::string& sha256);
  // Returns the worker time that isn't stored yet; the caller must store it.
  storage::Micros TakeBusy(const std::string& id);
  // Returns the entry; null unless it is running as this attempt.
  Open* Find(const std::string& id, uint64_t attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::Store* const store_;
  schedule::Analyses* const analyses_;
  rpc::BlobPins* const pins_;
  rpc::LiveStreams* const watches_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Open> open_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t attempts_ = 0;  // counts all; the thread's own
  std::thread thread_;     // last: it uses the others
};

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_RUNNER_H_
