// Wiring of the worker, and its orderly end.
#include "server/worker/worker.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace ablate::worker {

Worker::Worker(WorkerOptions options)
    : options_(std::move(options)),
      blobs_(BlobChannel::Make(options_.server)),
      loop_(options_.attach, AttachClient::Make(options_.server)),
      executor_(options_.executor, options_.make_trainer, blobs_.get(), &loop_),
      lanes_(static_cast<int>(options_.attach.hello.lanes()), Actions()) {}

// The loop calls the lanes, so it ends before they do.
Worker::~Worker() { loop_.Stop(); }

absl::Status Worker::Run() {
  lanes_.WaitUntilReady();
  if (absl::Status lost = end_.Lost(); !lost.ok()) return lost;
  loop_.Run(Requests());
  if (absl::Status end = end_.Wait(); !end.ok()) return end;
  spdlog::info("draining: saving and giving back what is held");
  lanes_.Drain();
  if (!loop_.WaitUntilSettled(options_.drain_patience)) {
    spdlog::warn("the server did not acknowledge everything within {}: leaving",
                 absl::FormatDuration(options_.drain_patience));
  }
  return end_.Lost();
}

LaneActions Worker::Actions() {
  LaneActions actions;
  actions.prepare = options_.prepare_lane;
  actions.execute = [this](const Instructions::LeasedRun& leased, RunControl& control) {
    return executor_.Execute(leased, control);
  };
  actions.release = [this](const Instructions::LeasedRun& leased) {
    v1::Event event;
    event.set_lease(leased.lease);
    event.set_run(leased.run.run());
    event.mutable_released();
    loop_.Report(std::move(event));
  };
  actions.lost = [this](const absl::Status& status) { end_.Lose(status); };
  return actions;
}

LaneRequests Worker::Requests() {
  LaneRequests requests;
  requests.start = [this](Instructions::LeasedRun leased) { lanes_.Start(std::move(leased)); };
  requests.abandon = [this](const Instructions::RunKey& key) { lanes_.Abandon(key); };
  requests.drain = [this] { Drain(); };
  requests.progress = [this] { return lanes_.Progress(); };
  return requests;
}

}  // namespace ablate::worker
