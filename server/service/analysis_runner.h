// Has stored analyses made: hands those that are open to the worker for analyses, stores what comes
// back, and tells whoever watches.
#ifndef ABLATE_SERVER_SERVICE_ANALYSIS_RUNNER_H_
#define ABLATE_SERVER_SERVICE_ANALYSIS_RUNNER_H_

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
#include "server/rpc/live_streams.h"
#include "server/schedule/analyses.h"
#include "server/service/blob_pins.h"
#include "storage/store.h"

namespace ablate::service {

// Thread-safe. One thread does everything that waits for the store, in the order in which it was
// asked for, so that what is stored of an analysis is never older than what is done next with it.
class AnalysisRunner {
 public:
  // So many ends of its worker in a row, without a state saved between them, fail an analysis.
  // After the first one it is made alone, so that the others are its own.
  static constexpr int kMaxFailures = 3;

  // `watches` are woken whenever an analysis changed. What is pointed to outlives this.
  AnalysisRunner(storage::Store* store, schedule::Analyses* analyses, BlobPins* pins,
                 rpc::LiveStreams* watches);
  // What is open stays so: the next server goes on.
  ~AnalysisRunner();
  AnalysisRunner(const AnalysisRunner&) = delete;
  AnalysisRunner& operator=(const AnalysisRunner&) = delete;

  // Takes up what an earlier server left open.
  void Start();
  // After that no analysis ends any more.
  void Stop();
  // Has it made; it is stored as QUEUED. Nothing happens if it is on its way, or not open.
  void Submit(const std::string& id);
  // Ends it at its worker; it is stored as CANCELLED, or gone.
  void Cancel(const std::string& id);
  // How far it is, 0 to 1: newer than what is stored; the latter if it is not on its way.
  double Progress(const storage::AnalysisRecord& analysis) const;
  // Ids at schedule::Analyses of those that are on their way, until what came of them is stored.
  std::vector<std::string> Requests() const;

 private:
  // One that is on its way.
  struct Open {
    std::string request;   // its id at schedule::Analyses; empty until it has one
    uint64_t attempt = 0;  // of this request: what is said about another one is too late
    double progress = 0;
    storage::Micros busy = 0;  // worker's time that is not stored yet
    int failures = 0;          // ends of its worker since it was saved
  };

  void Loop();
  void Post(std::function<void()> work);
  // The following run on the thread.
  void SubmitOpen();
  // Makes it unless it is on its way.
  void TakeUp(const std::string& id);
  void Make(const std::string& id);
  void OnBegun(const std::string& id, uint64_t attempt);
  void OnSaved(const std::string& id, uint64_t attempt, const worker::v1::AnalysisSaved& saved);
  void OnDone(const std::string& id, uint64_t attempt,
              const absl::StatusOr<worker::v1::AnalysisResult>& result);
  // Its subject was deleted: nobody wants it any more.
  void CancelIfRemoved(const std::string& id);
  void Finish(const std::string& id, const worker::v1::ComputationResult& result);
  void Fail(const std::string& id, const absl::Status& why);
  // Whether it is to be made again after its worker ended.
  bool TriesAgain(const std::string& id);
  // Does a write that is worth waiting for, also while the disk is full.
  absl::Status Store(const std::function<absl::Status()>& write);
  // It has ended: nothing more is kept of it here.
  void Forget(const std::string& id);
  void LetGo(const std::string& id, const std::string& sha256);
  // Worker's time that is not stored yet, and is from now on the caller's to store.
  storage::Micros TakeBusy(const std::string& id);
  // Null unless it is on its way by this attempt.
  Open* Find(const std::string& id, uint64_t attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::Store* const store_;
  schedule::Analyses* const analyses_;
  BlobPins* const pins_;
  rpc::LiveStreams* const watches_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Open> open_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t attempts_ = 0;  // of all; the thread's
  std::thread thread_;     // last: it uses the others
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ANALYSIS_RUNNER_H_
