#include "client/follow.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/follow_screen.h"
#include "client/found_runs.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/progress.h"
#include "client/output/screen.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kSilence = absl::Seconds(3);  // before a note that the server is away
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);
// A watch that lasts so long had a server: gRPC tries to connect to one that hangs for 20 s only.
constexpr absl::Duration kMinLiveWatch = absl::Seconds(30);

// A server that is away, or too busy for one more watch.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// Watches once and returns the experiment if it has ended, UNAVAILABLE if there is more to come.
absl::StatusOr<v1::Experiment> WatchOnce(Connection* connection,
                                         v1::WatchExperimentRequest* request,
                                         const OnEvent& on_event) {
  absl::Status watched =
      connection->Stream(kWatchExperiment, *request, [&](const v1::ExperimentEvent& event) {
        request->set_token(event.token());
        on_event(event);
        return absl::OkStatus();
      });
  if (absl::IsOutOfRange(watched) && !request->token().empty()) {
    request->clear_token();
    return absl::UnavailableError("the watch position expired; restarting from the current state");
  }
  if (!watched.ok()) return watched;
  v1::GetExperimentRequest get;
  get.set_name(request->name());
  absl::StatusOr<v1::Experiment> experiment = connection->Call(kGetExperiment, get);
  if (experiment.ok() && experiment->state() == v1::ExperimentState::ACTIVE) {
    return absl::UnavailableError("the server ended the watch early");
  }
  return experiment;
}

// Follow and FollowCells.
absl::StatusOr<v1::Experiment> FollowBy(Connection* connection, const Context& context,
                                        v1::WatchExperimentRequest request, const OnEvent& on_event,
                                        const OnAway& on_away) {
  absl::StatusOr<v1::Experiment> ended;
  const auto watch_once = [&](const std::function<void()>& alive) {
    ended = WatchOnce(connection, &request, [&](const v1::ExperimentEvent& event) {
      alive();
      on_event(event);
    });
    return ended.status();
  };
  const absl::Status watched = KeepWatching(context, watch_once, on_away);
  if (absl::IsUnavailable(watched)) {
    return absl::UnavailableError(absl::StrCat(watched.message(),
                                               "; the server continues the experiment when it "
                                               "runs: `ablate wait ",
                                               Id(request.name()), "` waits again"));
  }
  if (!watched.ok()) return watched;
  return ended;
}

}  // namespace

absl::Status KeepWatching(const Context& context, const WatchOnceFunction& watch_once,
                          const OnAway& on_away) {
  absl::Time lost = absl::InfiniteFuture();  // when the server was first missed
  bool told = false;                         // that it is away
  while (true) {
    const absl::Time began = context.now();
    absl::Status watched = watch_once([&] {
      lost = absl::InfiniteFuture();
      told = false;
    });
    // Nobody here cancels a watch: Ctrl-C ends the program. A proxy or a server that goes away
    // does.
    if (absl::IsCancelled(watched)) {
      watched = absl::UnavailableError(absl::StrCat("the watch was cut off: ", watched.message()));
    }
    if (!IsTransient(watched)) return watched;
    // A watch that went on for long had a server, though nothing happened.
    if (context.now() - began >= kMinLiveWatch) lost = absl::InfiniteFuture();
    lost = std::min(lost, context.now());
    const absl::Duration away = context.now() - lost;
    if (away >= kMaxTimeAway) return watched;
    if (on_away != nullptr) {
      on_away(watched, lost);
    } else if (away >= kSilence && !std::exchange(told, true)) {
      context.console.Note(absl::StrCat("the server does not answer; retrying for up to ",
                                        absl::ToInt64Seconds(kMaxTimeAway), " seconds"));
    }
    context.sleep(kRetryDelay);
  }
}

absl::StatusOr<v1::Experiment> Follow(Connection* connection, const Context& context,
                                      const v1::Experiment& experiment, const OnEvent& on_event,
                                      const OnAway& on_away) {
  v1::WatchExperimentRequest request;
  request.set_name(experiment.name());
  request.set_snapshots(true);
  return FollowBy(connection, context, std::move(request), on_event, on_away);
}

absl::StatusOr<v1::Experiment> FollowCells(Connection* connection, const Context& context,
                                           const v1::Experiment& experiment,
                                           const OnEvent& on_event) {
  v1::WatchExperimentRequest request;
  request.set_name(experiment.name());
  for (const std::string& key : {std::string("train/loss"), PrimaryMetric(experiment.spec())}) {
    request.add_keys(key);
  }
  return FollowBy(connection, context, std::move(request), on_event, nullptr);
}

absl::StatusOr<v1::Experiment> FollowWithProgress(Connection* connection, const Context& context,
                                                  const v1::Experiment& experiment,
                                                  std::ostream* out, bool live) {
  if (live) return FollowOnScreen(connection, context, experiment, out);
  std::optional<SignalGuard> guard;
  if (context.console.err_is_terminal) guard.emplace(-1, HowToComeBack(experiment));
  ProgressOptions options;
  options.name = Id(experiment.name());
  options.line = {false, context.console.width, out, context.now};
  Progress progress(std::move(options));
  absl::StatusOr<v1::Experiment> ended =
      Follow(connection, context, experiment,
             [&](const v1::ExperimentEvent& event) { progress.Update(event); });
  progress.Finish();
  if (!ended.ok()) return ended;
  const auto comparison = CompareEnded(connection, *ended);
  if (comparison.ok() && !comparison->verdict().text().empty()) {
    *out << Printable(comparison->verdict().text()) << std::endl;
  }
  return ended;
}

int ExitCodeOf(const v1::Experiment& experiment) {
  const v1::AnalysisCounts& analyses = experiment.analyses();
  if (experiment.counts().failed() > 0 || analyses.failed() > 0 || !analyses.failure().empty()) {
    return kFailure;
  }
  const bool cancelled = experiment.state() == v1::ExperimentState::CANCELLED ||
                         experiment.counts().cancelled() > 0 || analyses.cancelled() > 0;
  return cancelled ? kCancelled : kSuccess;
}

int FailToWait(const Context& context, const absl::Status& status) {
  const int code = Fail(context, status);
  return code == kFailure ? kWaitFailed : code;
}

namespace {

// Prints the reason of a failed run of a program, with the last lines of its log.
void PrintFailure(const Context& context, Connection* connection,
                  const v1::Experiment& experiment) {
  if (experiment.counts().failed() == 0 || !experiment.spec().base().has_program()) return;
  v1::ListRunsRequest request;
  request.set_experiment(experiment.name());
  request.set_filter("state = failed");
  const auto runs = ListFoundRuns(connection, std::move(request), 1);
  if (!runs.ok() || runs->rows().empty()) return;  // the outcome counts
  const std::string text = absl::StrCat("failed: ", FailureText(runs->rows(0)));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    context.console.Info(line);
  }
}

// Prints a line about the outcome, with the commands to examine failed runs.
void PrintOutcome(const Context& context, const v1::Experiment& experiment) {
  const std::string id = Id(experiment.name());
  std::string line = absl::StrCat(id, ": ", CountsText(experiment.counts()));
  if (!experiment.why_cancelled().empty()) {
    absl::StrAppend(&line, "; ", Printable(StateText(experiment)));
  }
  if (experiment.counts().failed() > 0) {
    absl::StrAppend(&line, "; `ablate runs ", id, "` shows why, `ablate logs ", id, "/CELL` the ",
                    experiment.spec().base().has_program() ? "log" : "history");
  }
  if (experiment.has_analyses()) {
    absl::StrAppend(
        &line, "; ",
        AnalysesText(experiment.analyses(), experiment.state() != v1::ExperimentState::ACTIVE));
    if (experiment.analyses().failed() > 0) {
      absl::StrAppend(&line, "; `ablate analyses ", id, "` shows why");
    }
    if (!experiment.analyses().failure().empty()) {
      absl::StrAppend(&line, "; ", Printable(experiment.analyses().failure()));
    }
  }
  context.console.Info(line);
}

}  // namespace

int FinishWait(const Context& context, Connection* connection,
               const absl::StatusOr<v1::Experiment>& ended) {
  if (!ended.ok()) return FailToWait(context, ended.status());
  PrintFailure(context, connection, *ended);
  PrintOutcome(context, *ended);
  return ExitCodeOf(*ended);
}

}  // namespace ablate::client
