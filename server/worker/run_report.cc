#include "server/worker/run_report.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"

namespace ablate::worker {
namespace {

constexpr absl::Duration kCreditPoll = absl::Milliseconds(20);
constexpr size_t kLogBytes = 64 << 10;  // of an event

// Removes invalid characters from a message, because an event that can't be parsed would be resent
// forever.
std::string Transportable(std::string message) {
  v1::Failed sent, arrived;
  sent.set_message(message);
  if (arrived.ParseFromString(sent.SerializeAsString())) return message;
  for (char& c : message) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return message;
}

}  // namespace

RunReport::RunReport(const ReportOptions& options, const v1::Grant& grant, RunControl* control,
                     BlobChannel* blobs, EventSink* events)
    : options_(options),
      grant_(grant),
      control_(control),
      events_(events),
      outbox_(grant.lease(), options.max_hold, blobs, events, control),
      began_(MonotonicNow()),
      delay_at_begin_(RunQueueDelay()),
      step_(grant.run().resume_step()),
      flushed_at_(began_) {}

void RunReport::Advanced(uint32_t step, uint64_t tokens) {
  step_ = step;
  tokens_ += tokens;
}

void RunReport::Started() {
  v1::Event started;
  started.mutable_started();
  outbox_.Post(std::move(started));
  control_->Progressed(step_);
}

void RunReport::Flush(bool now) {
  if (points_.empty()) return;
  const bool due = MonotonicNow() - flushed_at_ >= options_.flush_every;
  if (!now && flushed_ && !due) return;
  v1::Event event;
  const absl::Duration busy = MonotonicNow() - began_ - control_->waited();
  *event.mutable_points() =
      points_.Take(step_, {options_.lanes * busy, RunQueueDelay() - delay_at_begin_, tokens_});
  event.mutable_points()->set_expected_steps(expected_steps_);
  outbox_.Post(std::move(event));
  flushed_ = true;
  flushed_at_ = MonotonicNow();
}

void RunReport::Log(absl::string_view text) {
  while (!text.empty()) {
    v1::Event event;
    event.mutable_log()->set_text(std::string(text.substr(0, kLogBytes)));
    text.remove_prefix(std::min(kLogBytes, text.size()));
    outbox_.Post(std::move(event));
  }
}

void RunReport::AwaitCredit() {
  const auto may_go_on = [&] { return events_->HasCredit(grant_.lease()) && !outbox_.full(); };
  if (may_go_on()) return;
  Flush(/*now=*/true);
  const ServerWait waiting(*control_);
  while (!control_->halted() && !may_go_on()) control_->Pause(kCreditPoll);
}

absl::Status RunReport::SaveCheckpoint(engine::Checkpoint checkpoint) {
  v1::Event event;
  event.mutable_checkpoint()->set_step(checkpoint.step);
  return outbox_.PostBlob(std::move(event), std::move(checkpoint.safetensors));
}

absl::Status RunReport::SaveState(uint32_t step, std::string state) {
  v1::Event event;
  event.mutable_resume_state()->set_step(step);
  return outbox_.PostBlob(std::move(event), std::move(state));
}

absl::Status RunReport::Finish(bool diverged, uint32_t step) {
  v1::Event event;
  event.mutable_finished()->set_diverged(diverged);
  event.mutable_finished()->set_step(step);
  RETURN_IF_ERROR(outbox_.AwaitRoom());
  if (!outbox_.publishing()) return End(std::move(event));
  // The lane needn't wait for the server before it starts another run.
  end_ = std::move(event);
  return absl::OkStatus();
}

void RunReport::Complete() {
  const absl::Status ended = End(*std::exchange(end_, std::nullopt));
  if (!ended.ok() && !control_->abandoned()) Fail(ended);
}

absl::Status RunReport::Release(absl::string_view state_refused) {
  v1::Event event;
  event.mutable_released()->set_state_refused(Transportable(std::string(state_refused)));
  return End(std::move(event));
}

void RunReport::Fail(const absl::Status& status, bool is_final) {
  Flush(/*now=*/true);
  v1::Event failed;
  failed.mutable_failed()->set_message(Transportable(std::string(status.message())));
  failed.mutable_failed()->set_is_final(is_final);
  // A blob that can't be published may be the cause.
  outbox_.Settle().IgnoreError();
  outbox_.Post(std::move(failed));
}

absl::Status RunReport::End(v1::Event event) {
  absl::Status settled = outbox_.Settle();
  if (settled.ok()) outbox_.Post(std::move(event));
  return settled;
}

}  // namespace ablate::worker
