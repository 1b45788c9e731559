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
  {
    MutexLock lock(&mutex_);
    if (!lost_.ok()) return lost_;
  }
  loop_.Run(Requests());
  if (absl::Status end = WaitForEnd(); !end.ok()) return end;
  spdlog::info("draining: saving and giving back what is held");
  lanes_.Drain();
  if (!loop_.WaitUntilSettled(options_.drain_patience)) {
    spdlog::warn("the server did not acknowledge everything within {}: leaving",
                 absl::FormatDuration(options_.drain_patience));
  }
  MutexLock lock(&mutex_);
  return lost_;
}

void Worker::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  changed_.SignalAll();
}

void Worker::Lose(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (lost_.ok()) lost_ = status;
  changed_.SignalAll();
}

absl::Status Worker::WaitForEnd() {
  MutexLock lock(&mutex_);
  while (!draining_ && lost_.ok()) changed_.Wait(&mutex_);
  return lost_;
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
  actions.lost = [this](const absl::Status& status) { Lose(status); };
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
