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
  if (absl::Status lost = end_.Lost(); !lost.ok()) return lost;
  loop_.Run(std::move(lanes), std::move(analyses));
  const absl::Status end = end_.Wait();
  // The process may end at once: why the last analysis failed is said before.
  loop_.Flush(kFlushPatience);
  return end;
}

AnalystActions AnalysisWorker::Actions() {
  AnalystActions actions;
  actions.prepare = options_.prepare;
  actions.generate = options_.generate;
  actions.send = [this](v1::FromWorker message) { loop_.Send(std::move(message)); };
  actions.lost = [this](const absl::Status& status) { end_.Lose(status); };
  return actions;
}

}  // namespace ablate::worker
