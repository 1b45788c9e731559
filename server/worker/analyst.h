// Makes analyses, one at a time, on a thread of its own.
#ifndef ABLATE_SERVER_WORKER_ANALYST_H_
#define ABLATE_SERVER_WORKER_ANALYST_H_

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/samples.h"
#include "server/worker/blob_channel.h"
#include "server/worker/data_sets.h"
#include "server/worker/run_control.h"
#include "sync/mutex.h"

namespace ablate::worker {

// engine::GenerateSamples, or a test's.
using SampleGenerator = std::function<absl::StatusOr<engine::SampleCounts>(
    const engine::RunConfig&, absl::string_view checkpoint, const engine::SampleOptions&,
    const std::atomic<bool>& stop, const std::function<void(std::vector<engine::Sample>)>&)>;

struct AnalystActions {
  // Makes the analyst's thread ready; before its first analysis.
  std::function<absl::Status()> prepare;
  SampleGenerator generate;
  // Called on the analyst's thread; must not block.
  std::function<void(v1::FromWorker)> send;
  // Preparing or an analysis failed in a way that makes the device useless; called once.
  std::function<void(const absl::Status&)> lost;
};

// Thread-safe.
class Analyst {
 public:
  Analyst(AnalystActions actions, BlobChannel* blobs);
  // Stops what runs, within a token or a pass over the data, and waits for it.
  ~Analyst();

  // Returns when the thread is ready, or lost.
  void WaitUntilReady();
  // Puts an analysis behind those that wait.
  void Start(v1::Analyze analyze);
  // Ends an analysis within a token or a pass over the data; it still reports its end.
  void Cancel(const std::string& id);
  // The same for all of them.
  void CancelAll();

 private:
  struct Job {
    v1::Analyze analyze;
    RunControl control;
  };

  void Work();
  // Waits for a job, which stays in the list; null at the end.
  Job* Next();
  // `end` is the job's last message, whatever comes of it. UNAVAILABLE: the device is lost, also to
  // a job that was withdrawn; the channel of blobs never says that.
  absl::Status Make(Job& job, v1::FromWorker* end);
  absl::StatusOr<v1::SamplesResult> MakeSamples(Job& job);

  const AnalystActions actions_;
  BlobChannel* const blobs_;
  DataSets data_sets_;
  Mutex mutex_;
  CondVar changed_;
  std::list<Job> jobs_ ABSL_GUARDED_BY(mutex_);  // the first runs, or is next
  bool preparing_ ABSL_GUARDED_BY(mutex_) = true;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_ANALYST_H_
