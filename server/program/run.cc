#include "server/program/run.h"

#include <poll.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/program/launch.h"
#include "server/program/sandbox.h"

namespace ablate::program {
namespace {

constexpr size_t kMaxLogRead = 1 << 20;  // so that a flood doesn't keep Poll from returning
constexpr size_t kMaxMetricsRead = 64 << 10;
constexpr int kMaxLastReads = 100;          // without a sandbox, a process may be left that writes
constexpr char kSandboxName[] = "bwrap: ";  // begins its messages
constexpr char kRejected[] = R"({"error": "checkpoint: its step is below the last one logged"})";

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", number);
}

std::string SignalReason(int number) {
  const std::string reason = absl::StrCat("killed by ", SignalName(number));
  if (number != SIGKILL) return reason;
  return absl::StrCat(reason, ", perhaps because the machine ran out of memory");
}

// Explains the end of the sandbox before the program's; then `log` ends with the sandbox's error.
std::string SandboxReason(const Request& request, absl::string_view log) {
  const absl::string_view error = log.substr(log.rfind('\n') + 1);
  if (!absl::StartsWith(error, kSandboxName)) return "the sandbox was ended from outside";
  return absl::StartsWith(error, "bwrap: execvp ") ? ExplainExec(request, error)
                                                   : ExplainSandboxError(error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Run>> Run::Start(Request request, WarmPool* warm) {
  RETURN_IF_ERROR(CheckRequest(request));
  const absl::Duration started = MonotonicNow();
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process, warm != nullptr && MayFork(request)
                                                         ? warm->StartRun(request)
                                                         : Process::Start(request));
  return std::unique_ptr<Run>(new Run(std::move(request), std::move(process), started));
}

Run::Run(Request request, std::unique_ptr<Process> process, absl::Duration started)
    : request_(std::move(request)), process_(std::move(process)), watch_(request_, started) {}

Output Run::Poll(absl::Duration wait) {
  const absl::Duration deadline = MonotonicNow() + wait;
  Output output;
  while (!reported_) {
    if (!exit_.has_value()) exit_ = process_->TryWait();
    ReadLog(&output);
    if (exit_.has_value()) {
      Finish(&output);
    } else {
      ReadMetrics(&output);
      CheckTime(MonotonicNow());
    }
    const absl::Duration now = MonotonicNow();
    if (!output.empty() || now >= deadline || (exit_.has_value() && awaits_reply_)) break;
    if (!exit_.has_value()) AwaitNews(deadline);
  }
  return output;
}

void Run::ReadLog(Output* output) {
  if (!log_open_) return;
  std::string bytes;
  log_open_ = ReadAvailable(process_->log(), kMaxLogRead, &bytes);
  absl::StrAppend(&output->log, log_.Add(bytes));
}

bool Run::ReadMetrics(Output* output) {
  if (awaits_reply_) return false;
  // Lines that followed a checkpoint come first.
  TakeEvents(/*last=*/false, output);
  if (awaits_reply_ || !output->points.empty() || !metrics_open_) return false;
  std::string bytes;
  metrics_open_ = ReadAvailable(process_->metrics(), kMaxMetricsRead, &bytes);
  lines_.Add(bytes);
  TakeEvents(/*last=*/false, output);
  return !bytes.empty();
}

void Run::TakeEvents(bool last, Output* output) {
  MetricEvents events = lines_.Take(last);
  output->points.insert(output->points.end(), std::make_move_iterator(events.points.begin()),
                        std::make_move_iterator(events.points.end()));
  if (events.progress.has_value()) output->progress = events.progress;
  for (const std::string& remark : events.remarks) output->log += log_.AddRemark(remark);
  for (size_t i = 0; i < events.rejected_checkpoints; ++i) process_->Reply(kRejected);
  if (!events.checkpoint.has_value()) return;
  output->checkpoint = events.checkpoint;
  awaits_reply_ = true;
  // Text that was printed before the line was written is in the pipe by now.
  ReadLog(output);
}

void Run::CheckTime(absl::Duration now) {
  if (killed_) return;
  breach_ = watch_.Check(*process_, now);
  grace_over_ = now - terminated_ >= grace_;
  if (breach_.has_value() || grace_over_) Kill();
}

void Run::AwaitNews(absl::Duration until) const {
  if (!killed_) until = std::min({until, watch_.next(), terminated_ + grace_});
  std::array<pollfd, 3> ends = {
      {{process_->EndDescriptor(), POLLIN, 0},
       {log_open_ ? process_->log().get() : -1, POLLIN, 0},
       {metrics_open_ && !awaits_reply_ ? process_->metrics().get() : -1, POLLIN, 0}}};
  poll(ends.data(), ends.size(), PollMilliseconds(until - MonotonicNow()));
}

void Run::Finish(Output* output) {
  if (awaits_reply_) return;
  // All writers are gone, so what can be read now is the rest.
  for (int read = 0; read < kMaxLastReads && ReadMetrics(output); ++read) {
    if (awaits_reply_ || !output->points.empty()) return;
  }
  if (awaits_reply_ || !output->points.empty()) return;
  TakeEvents(/*last=*/true, output);
  if (awaits_reply_) return;
  absl::StrAppend(&output->log, log_.Finish());
  output->ended = DescribeEnd();
  reported_ = true;
}

Ended Run::DescribeEnd() {
  Ended ended;
  ended.last_lines = log_.LastLines();
  ended.stopped = terminated_ != absl::InfiniteDuration() || (killed_ && !breach_.has_value());
  const bool failed = !exit_->started || exit_->code != 0 || exit_->signal != 0;
  if (failed && !killed_) breach_ = watch_.CheckDisk();
  ended.lost = exit_->lost && !killed_ && !breach_.has_value();
  if (breach_.has_value()) {
    ended.limit = breach_->limit;
    ended.reason = breach_->reason;
    ended.stopped = false;
  } else if (killed_ || (ended.stopped && !exit_->started)) {
    ended.signal = "SIGKILL";
    ended.reason = grace_over_
                       ? absl::StrCat("killed ", absl::FormatDuration(grace_), " after SIGTERM")
                       : "killed";
  } else if (!exit_->started) {
    ended.exit_code = exit_->code;
    ended.reason = SandboxReason(request_, ended.last_lines);
    if (absl::StartsWith(ended.last_lines, kSandboxName)) ended.last_lines.clear();
  } else if (exit_->signal != 0) {
    ended.signal = SignalName(exit_->signal);
    ended.reason = SignalReason(exit_->signal);
  } else {
    ended.exit_code = exit_->code;
    ended.reason = absl::StrCat("exit code ", exit_->code);
  }
  return ended;
}

void Run::Reply(absl::string_view line) {
  if (!awaits_reply_) return;
  awaits_reply_ = false;
  process_->Reply(line);
}

void Run::Terminate(absl::Duration grace) {
  if (exit_.has_value() || killed_) return;
  terminated_ = std::min(terminated_, MonotonicNow());
  grace_ = std::min(grace_, grace);
  if (!process_->Signal(SIGTERM) && !process_->TryWait().has_value()) Kill();
}

void Run::Kill() {
  if (exit_.has_value()) return;
  killed_ = true;
  process_->Kill();
}

absl::StatusOr<Output> RunToEnd(Request request) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Run> run, Run::Start(std::move(request)));
  Output all;
  while (!all.ended.has_value()) {
    Output output = run->Poll(absl::InfiniteDuration());
    all.log += output.log;
    all.ended = std::move(output.ended);
  }
  return all;
}

}  // namespace ablate::program
