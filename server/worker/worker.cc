#include "server/worker/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/config/program.h"

namespace ablate::worker {
namespace {

constexpr absl::Duration kFlushTimeout = absl::Seconds(1);
constexpr char kCuda[] = "cuda";

ExecutorOptions WithLanes(ExecutorOptions options, uint32_t lanes) {
  options.lanes = lanes;
  return options;
}

}  // namespace

Worker::Worker(WorkerOptions options)
    : options_(std::move(options)),
      blobs_(BlobChannel::Make(options_.server, options_.blob_folder)),
      loop_(options_.attach, AttachClient::Make(options_.server)),
      executor_(WithLanes(options_.executor, options_.attach.hello.lanes()), options_.make_trainer,
                options_.memory, blobs_.get(), &loop_),
      analyst_(options_.analysis, blobs_.get(),
               [this](v1::FromWorker message) { loop_.Send(std::move(message)); }),
      lanes_(static_cast<int>(options_.attach.hello.lanes()),
             {options_.prepare_lane, [this](const absl::Status& status) { Lose(status); }},
             options_.measure_lanes ? 1 : static_cast<int>(options_.attach.hello.lanes())) {}

// The loop and the governor call the lanes, so they stop first.
Worker::~Worker() {
  loop_.Stop();
  {
    MutexLock lock(&mutex_);
    quit_ = true;
    changed_.SignalAll();
  }
  if (governor_.joinable()) governor_.join();
}

absl::Status Worker::Run() {
  lanes_.WaitUntilReady();
  RETURN_IF_ERROR(Lost());
  loop_.Run(Requests());
  if (options_.measure_lanes) governor_ = std::thread([this] { GovernLanes(); });
  const absl::Status end = WaitForEnd();
  if (!trains()) {
    // The process may end at once: report why the last analysis failed first.
    loop_.Flush(kFlushTimeout);
    return end;
  }
  if (!end.ok()) return end;
  spdlog::info("draining: saving and giving back what is held");
  lanes_.Drain();
  if (!loop_.WaitUntilSettled(options_.drain_timeout)) {
    spdlog::warn("the server did not acknowledge everything within {}: leaving",
                 absl::FormatDuration(options_.drain_timeout));
  }
  return Lost();
}

void Worker::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  changed_.SignalAll();
}

AttachRequests Worker::Requests() {
  AttachRequests requests;
  requests.drain = [this] { Drain(); };
  requests.refused = [this](const absl::Status& why) { Lose(why); };
  requests.abandon = [this](const std::string& lease) { lanes_.Abandon(lease); };
  if (trains()) {
    requests.progress = [this] { return lanes_.Progress(); };
    requests.device_use = options_.device_use;
    if (options_.attach.hello.device_kind() == kCuda) {
      requests.lanes = [this] { return static_cast<uint32_t>(lanes_.limit()); };
    }
    requests.save = [this](const std::string& lease) { lanes_.Save(lease); };
    requests.start = [this](v1::Grant grant) { lanes_.Start(JobOf(std::move(grant))); };
    return requests;
  }
  requests.analyze = [this](v1::Analyze analyze) { lanes_.Start(JobOf(std::move(analyze))); };
  requests.cancel_analysis = [this](const std::string& id) { lanes_.Abandon(id); };
  requests.yield_analysis = [this](const std::string& id) { lanes_.Halt(id); };
  requests.disconnected = [this] { lanes_.AbandonAll(); };
  return requests;
}

Job Worker::JobOf(v1::Grant grant) {
  Job job;
  job.id = grant.lease();
  job.lanes = static_cast<int>(spec::LanesOf(grant.run().spec().spec()));
  job.drained = [this, lease = grant.lease()] {
    v1::Event event;
    event.set_lease(lease);
    event.mutable_released();
    loop_.Report(std::move(event));
  };
  job.work = [this, grant = std::move(grant)](RunControl& control, Completion* completion) {
    return executor_.Execute(grant, control, completion);
  };
  return job;
}

Job Worker::JobOf(v1::Analyze analyze) {
  Job job;
  job.id = analyze.id();
  job.abandoned = [this, id = analyze.id()] { analyst_.ReportWithdrawn(id); };
  job.work = [this, analyze = std::move(analyze)](RunControl& control, Completion*) {
    return analyst_.Execute(analyze, control);
  };
  return job;
}

void Worker::GovernLanes() {
  LaneGovernor governor(static_cast<int>(options_.attach.hello.lanes()));
  int failures = 0;
  while (true) {
    const int before = governor.lanes();
    if (executor_.out_of_memory() != failures) {
      failures = executor_.out_of_memory();
      governor.OutOfMemory(MonotonicNow());
    }
    governor.Observe(MonotonicNow(), lanes_.OnLanes());
    if (governor.lanes() != before) {
      spdlog::info("lanes: {} instead of {}", governor.lanes(), before);
      lanes_.SetLimit(governor.lanes());
    }
    const absl::Duration next = MonotonicNow() + options_.measure_every;
    MutexLock lock(&mutex_);
    for (absl::Duration left; !quit_ && (left = next - MonotonicNow()) > absl::ZeroDuration();) {
      changed_.WaitFor(&mutex_,
                       absl::ToChronoMilliseconds(absl::Ceil(left, absl::Milliseconds(1))));
    }
    if (quit_) return;
  }
}

void Worker::Lose(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (lost_.ok()) lost_ = status;
  changed_.SignalAll();
}

absl::Status Worker::Lost() {
  MutexLock lock(&mutex_);
  return lost_;
}

absl::Status Worker::WaitForEnd() {
  MutexLock lock(&mutex_);
  while (!draining_ && lost_.ok()) {
    const absl::Duration left = options_.exit_when_idle - loop_.IdleTime();
    if (left == absl::InfiniteDuration()) {
      changed_.Wait(&mutex_);
    } else if (left > absl::ZeroDuration()) {
      changed_.WaitFor(&mutex_,
                       absl::ToChronoMilliseconds(absl::Ceil(left, absl::Milliseconds(1))));
    } else if (!loop_.WasAttached()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "no server was reached within ", absl::FormatDuration(options_.exit_when_idle)));
    } else {
      spdlog::info("had no run for {}: leaving", absl::FormatDuration(options_.exit_when_idle));
      draining_ = true;
    }
  }
  return lost_;
}

}  // namespace ablate::worker
