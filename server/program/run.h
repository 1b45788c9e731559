// Runs a user's own program and hands out its points, log, checkpoints and end.
#ifndef ABLATE_SERVER_PROGRAM_RUN_H_
#define ABLATE_SERVER_PROGRAM_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/program/limit_watch.h"
#include "server/program/log_tail.h"
#include "server/program/metric_lines.h"
#include "server/program/process.h"
#include "server/program/request.h"
#include "server/program/warm_start.h"

namespace ablate::program {

// One running program. A single thread starts it, polls it and destroys it; the kernel kills the
// program if that thread ends. The program gets two descriptors, numbered by variables: it writes
// lines of JSON to $ABLATE_METRICS (see MetricLines), and reads answers to checkpoints from
// $ABLATE_REPLIES. It waits while its lines aren't polled. Its standard output and error are the
// log. Limits are checked while Poll is called.
class Run {
 public:
  // Returns INVALID_ARGUMENT for a malformed request; FAILED_PRECONDITION if a folder can't be
  // entered, or the sandbox can't be made. If the command doesn't exist or can't be executed, the
  // run ends with the reason; without a sandbox, that is an error here. With a pool, a run that
  // MayFork is forked.
  static absl::StatusOr<std::unique_ptr<Run>> Start(Request request, WarmPool* warm = nullptr);
  // Kills everything that the program started and waits until it is gone.
  ~Run() = default;

  // Waits at most `wait` and returns as soon as something has arrived; then the output isn't empty.
  // All lines before a checkpoint, and the log until then, are in this or in earlier outputs; lines
  // after it are read only after Reply. A checkpoint below the last logged step isn't handed out:
  // its reply is {"error": TEXT}. After `ended`, outputs are empty.
  Output Poll(absl::Duration wait);
  // Answers a checkpoint by a line.
  void Reply(absl::string_view line);

  // Sends SIGTERM to the program, and kills everything if it hasn't ended after `grace`.
  void Terminate(absl::Duration grace = absl::InfiniteDuration());
  // Kills everything. Poll reports the end.
  void Kill();

 private:
  Run(Request request, std::unique_ptr<Process> process, absl::Duration started);

  // Each reads what has arrived.
  void ReadLog(Output* output);
  bool ReadMetrics(Output* output);  // false: nothing arrived
  void TakeEvents(bool last, Output* output);
  // Kills the program if it has reached a limit or its grace is over.
  void CheckTime(absl::Duration now);
  // Reads what the ended program left; sets `ended` when nothing is left.
  void Finish(Output* output);
  Ended DescribeEnd();
  // Waits until something may have arrived, or until `until`.
  void AwaitNews(absl::Duration until) const;

  const Request request_;
  const std::unique_ptr<Process> process_;
  LimitWatch watch_;
  MetricLines lines_;
  LogTail log_;
  bool log_open_ = true;
  bool metrics_open_ = true;
  bool awaits_reply_ = false;
  std::optional<Breach> breach_;
  absl::Duration terminated_ = absl::InfiniteDuration();  // when Terminate was called
  absl::Duration grace_ = absl::InfiniteDuration();
  bool grace_over_ = false;
  bool killed_ = false;  // by Kill, by a limit, or after the grace
  std::optional<Exit> exit_;
  bool reported_ = false;  // the end
};

// Runs a program that makes no checkpoints. Returns its log and its end.
absl::StatusOr<Output> RunToEnd(Request request);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_RUN_H_
