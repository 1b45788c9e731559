// Wiring of the worker for analyses.
#include "server/worker/analysis_worker.h"

#include <utility>

namespace ablate::worker {
namespace {

constexpr absl::Duration kFlushPatience = absl::Seconds(1);

}  // namespace

AnalysisWorker::AnalysisWorker(AnalysisWorkerOptions options)
    : options_(std::move(options)),
      blobs_(BlobChannel::Make(options_.server)),
      loop_(options_.attach, AttachClient::Make(options_.server)),
      analyst_(Actions(), blobs_.get()) {}

// The loop calls the analyst, so it ends before that does.
AnalysisWorker::~AnalysisWorker() { loop_.Stop(); }

absl::Status AnalysisWorker::Run() {
  analyst_.WaitUntilReady();
  LaneRequests lanes;
  lanes.start = [](const Instructions::LeasedRun&) {};
  lanes.abandon = [](const Instructions::RunKey&) {};
  lanes.drain = [this] { Drain(); };
  lanes.progress = [] { return std::vector<v1::LeaseProgress>(); };
  AnalysisRequests analyses;
  analyses.start = [this](v1::Analyze analyze) { analyst_.Start(std::move(analyze)); };
  analyses.cancel = [this](const std::string& id) { analyst_.Cancel(id); };
  analyses.disconnected = [this] { analyst_.CancelAll(); };
  {
    MutexLock lock(&mutex_);
    if (!lost_.ok()) return lost_;
  }
  loop_.Run(std::move(lanes), std::move(analyses));
  const absl::Status end = WaitForEnd();
  // The process may end at once: why the last analysis failed is said before.
  loop_.Flush(kFlushPatience);
  return end;
}

absl::Status AnalysisWorker::WaitForEnd() {
  MutexLock lock(&mutex_);
  while (!draining_ && lost_.ok()) changed_.Wait(&mutex_);
  return lost_;
}

void AnalysisWorker::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  changed_.SignalAll();
}

void AnalysisWorker::Lose(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (lost_.ok()) lost_ = status;
  changed_.SignalAll();
}

AnalystActions AnalysisWorker::Actions() {
  AnalystActions actions;
  actions.prepare = options_.prepare;
  actions.generate = options_.generate;
  actions.send = [this](v1::FromWorker message) { loop_.Send(std::move(message)); };
  actions.lost = [this](const absl::Status& status) { Lose(status); };
  return actions;
}

}  // namespace ablate::worker
