#include "client/follow_screen.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/experiment_screen.h"
#include "client/output/experiment_state.h"
#include "client/output/screen.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr std::chrono::milliseconds kScreenDrawEvery{200};
constexpr absl::Duration kAwayLookEvery = absl::Milliseconds(500);
constexpr absl::Duration kAnswerTime = absl::Seconds(2);
constexpr uint32_t kMaxCurvePoints = 160;

// Follows an experiment on a thread of its own, which owns the connection, while another one draws.
class Gatherer {
 public:
  // The arguments must outlive it.
  Gatherer(Connection* connection, const Context* context, const v1::Experiment* experiment)
      : connection_(connection), context_(context), experiment_(experiment), state_(*experiment) {}

  // Returns the ended experiment. Runs on the gathering thread.
  absl::StatusOr<v1::Experiment> Run();
  // Marks the end of Run.
  void Stop();
  // Waits for the next drawing; returns false after Stop.
  bool WaitToDraw();
  ExperimentView View();

 private:
  void OnEvent(const v1::ExperimentEvent& event);
  void OnAway(const absl::Status& reason, absl::Time lost);
  void AskForLanes();

  Connection* const connection_;
  const Context* const context_;
  const v1::Experiment* const experiment_;
  absl::Time asked_ = absl::InfinitePast();  // of the gathering thread

  Mutex mutex_;
  CondVar stop_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  ExperimentState state_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<v1::Experiment> Gatherer::Run() {
  const auto cells = ListAllRuns(connection_, experiment_->name());
  if (cells.ok()) {
    MutexLock lock(&mutex_);
    state_.SetCells(*cells);
  }
  absl::StatusOr<v1::Experiment> ended = *experiment_;
  if (experiment_->state() == v1::ExperimentState::ACTIVE) {
    ended = Follow(
        connection_, *context_, *experiment_,
        [this](const v1::ExperimentEvent& event) { OnEvent(event); },
        [this](const absl::Status& reason, absl::Time lost) { OnAway(reason, lost); });
  }
  if (!ended.ok()) return ended;
  const auto comparison = CompareEnded(connection_, *ended);
  MutexLock lock(&mutex_);
  state_.End(*ended, comparison.ok() ? &*comparison : nullptr);
  return ended;
}

void Gatherer::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  stop_.SignalAll();
}

bool Gatherer::WaitToDraw() {
  MutexLock lock(&mutex_);
  if (!stopped_) stop_.WaitFor(&mutex_, kScreenDrawEvery);
  return !stopped_;
}

ExperimentView Gatherer::View() {
  MutexLock lock(&mutex_);
  return state_.View();
}

void Gatherer::OnEvent(const v1::ExperimentEvent& event) {
  const absl::Time now = context_->now();
  {
    MutexLock lock(&mutex_);
    state_.Update(event, now);
  }
  if (now - asked_ < kLanesAskEvery) return;
  asked_ = now;
  AskForLanes();
}

void Gatherer::AskForLanes() {
  const auto workers =
      ListAll(connection_, kListWorkers, &v1::ListWorkersResponse::mutable_workers);
  if (!workers.ok()) return;  // the watch finds out that the server is away
  v1::QueryMetricsRequest request;
  {
    MutexLock lock(&mutex_);
    state_.SetWorkers(*workers);
    for (const std::string& run : state_.TakeRunsWithoutCurve()) request.add_runs(run);
  }
  if (request.runs().empty()) return;
  request.add_keys("train/loss");
  request.set_max_points(kMaxCurvePoints);
  connection_
      ->Stream(kQueryMetrics, request,
               [this](const v1::Series& series) {
                 MutexLock lock(&mutex_);
                 state_.SetCurve(series);
                 return absl::OkStatus();
               })
      .IgnoreError();  // the curve then begins with the next event
}

// Waits until the server answers, so that a watch in which nothing happens isn't shown as lost.
void Gatherer::OnAway(const absl::Status& reason, absl::Time lost) {
  if (!absl::IsUnavailable(reason)) {
    MutexLock lock(&mutex_);
    return state_.SetWaiting(std::nullopt, std::string(reason.message()));
  }
  {
    MutexLock lock(&mutex_);
    state_.SetWaiting(lost, "");
  }
  while (!connection_->ListWorkersWithin(kAnswerTime).ok()) {
    if (context_->now() - lost >= kMaxTimeAway) return;
    context_->sleep(kAwayLookEvery);
  }
  MutexLock lock(&mutex_);
  state_.SetWaiting(std::nullopt, "");
}

}  // namespace

absl::StatusOr<v1::Experiment> FollowOnScreen(Connection* connection, const Context& context,
                                              const v1::Experiment& experiment, std::ostream* out) {
  Gatherer gatherer(connection, &context, &experiment);
  absl::StatusOr<v1::Experiment> ended;
  const int terminal = context.console.FileOf(out);
  const WindowSize otherwise = {context.console.width, WindowSize().height};
  if (experiment.state() == v1::ExperimentState::ACTIVE) {
    Screen screen(out, terminal, otherwise, HowToComeBack(experiment));
    std::thread thread([&] {
      ended = gatherer.Run();
      gatherer.Stop();
    });
    do {
      const WindowSize size = screen.size();
      screen.Draw(ExperimentScreen(gatherer.View(), size.width, size.height, context.now()));
    } while (gatherer.WaitToDraw());
    thread.join();
  } else {
    ended = gatherer.Run();
  }
  if (!ended.ok()) return ended;
  const int width = WindowSizeOf(terminal, otherwise).width;
  for (const std::string& line :
       ExperimentScreen(gatherer.View(), width, /*height=*/0, context.now())) {
    *out << Printable(line) << "\n";
  }
  *out << std::flush;
  return ended;
}

std::string HowToComeBack(const v1::Experiment& experiment) {
  const std::string id = Id(experiment.name());
  return absl::StrCat(id, " goes on; `ablate watch ", id, "` shows it again");
}

absl::StatusOr<v1::Comparison> CompareEnded(Connection* connection,
                                            const v1::Experiment& experiment) {
  if (experiment.state() == v1::ExperimentState::CANCELLED) {
    return absl::FailedPreconditionError("the experiment was cancelled");
  }
  v1::CompareRequest request;
  request.set_experiment(experiment.name());
  return connection->Call(kCompare, request);
}

}  // namespace ablate::client
