// The process of a device that makes analyses: analyst and attach loop put together. It holds no
// lease.
#ifndef ABLATE_SERVER_WORKER_ANALYSIS_WORKER_H_
#define ABLATE_SERVER_WORKER_ANALYSIS_WORKER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/worker/analyst.h"
#include "server/worker/attach_loop.h"
#include "server/worker/blob_channel.h"
#include "server/worker/worker_end.h"

namespace ablate::worker {

struct AnalysisWorkerOptions {
  std::string server;    // gRPC address, such as unix:PATH
  AttachOptions attach;  // its Hello also says the role
  std::function<absl::Status()> prepare;
  SampleGenerator generate;
};

// Thread-safe.
class AnalysisWorker {
 public:
  explicit AnalysisWorker(AnalysisWorkerOptions options);
  ~AnalysisWorker();

  // Prepares, attaches and works. OK when it was drained, by Drain or by the server; an error if
  // the device is lost. An analysis may still run then, and the process should end without the
  // destructor.
  absl::Status Run();
  // Makes Run return; returns at once.
  void Drain() { end_.Drain(); }

 private:
  AnalystActions Actions();

  const AnalysisWorkerOptions options_;
  WorkerEnd end_;
  const std::unique_ptr<BlobChannel> blobs_;
  AttachLoop loop_;
  Analyst analyst_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_ANALYSIS_WORKER_H_
