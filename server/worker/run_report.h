// Reports one run to the server: its points, states and checkpoints in order, then how it ended.
#ifndef ABLATE_SERVER_WORKER_RUN_REPORT_H_
#define ABLATE_SERVER_WORKER_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/engine/trainer.h"
#include "server/worker/blob_channel.h"
#include "server/worker/outbox.h"
#include "server/worker/point_buffer.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

struct ReportOptions {
  absl::Duration flush_every;
  absl::Duration max_hold;  // as Outbox's
  uint32_t lanes = 1;       // that the run takes
};

// Collects and sends the events of one lease. One thread, the lane, uses it.
class RunReport {
 public:
  // The other arguments must outlive it.
  RunReport(const ReportOptions& options, const v1::Grant& grant, RunControl* control,
            BlobChannel* blobs, EventSink* events);

  // The number of updates made, and the tokens that they read.
  uint32_t step() const { return step_; }
  void Advanced(uint32_t step, uint64_t tokens = 0);

  void Started();
  void Add(const std::vector<engine::Point>& points) { points_.Add(points); }
  // Steps that a program expects to make.
  void Expect(uint32_t steps) { expected_steps_ = steps; }
  // Sends the points if there are some, and `now` is set or they are the first or waited long
  // enough.
  void Flush(bool now);
  // Sends a part of a program's log, in pieces.
  void Log(absl::string_view text);
  // Pauses while too much is held back or unacknowledged. Sends everything first, because only that
  // can end the pause. Returns early if the run must stop.
  void AwaitCredit();

  // Publish a blob in the background and send its event, after everything so far.
  absl::Status SaveCheckpoint(engine::Checkpoint checkpoint);
  absl::Status SaveState(uint32_t step, std::string state);

  // Ends the run. If small blobs are still under way, Complete sends the end.
  absl::Status Finish(bool diverged, uint32_t step);
  bool needs_completion() const { return end_.has_value(); }
  void Complete();
  // Returns the run to the queue; `state_refused` as in the event.
  absl::Status Release(absl::string_view state_refused = "");
  // Reports why the run failed; `is_final`: another attempt would fail, too.
  void Fail(const absl::Status& status, bool is_final = false);

  Outbox& outbox() { return outbox_; }
  const Outbox& outbox() const { return outbox_; }

 private:
  // Sends the last event after everything posted before.
  absl::Status End(v1::Event event);

  const ReportOptions options_;
  const v1::Grant& grant_;
  RunControl* const control_;
  EventSink* const events_;
  Outbox outbox_;
  PointBuffer points_;
  const absl::Duration began_;
  const absl::Duration delay_at_begin_;
  uint32_t step_ = 0;
  uint64_t tokens_ = 0;
  uint32_t expected_steps_ = 0;
  bool flushed_ = false;
  absl::Duration flushed_at_;
  std::optional<v1::Event> end_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RUN_REPORT_H_
