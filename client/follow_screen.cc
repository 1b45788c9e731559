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
#include "client/output/screen.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr std::chrono::milliseconds kScreenDrawEvery{200};

// Follows an experiment on a thread of its own, which owns the connection, while another one draws.
class Gatherer {
 public:
  // The arguments must outlive it.
  Gatherer(Connection* connection, const Context* context, const v1::Experiment* experiment)
      : connection_(connection), context_(context), experiment_(experiment) {
    view_.experiment = *experiment;
    *view_.event.mutable_counts() = experiment->counts();
  }

  // Returns the ended experiment. Runs on the gathering thread.
  absl::StatusOr<v1::Experiment> Run();
  // Marks the end of Run.
  void Stop();
  // Waits for the next drawing; returns false after Stop.
  bool WaitToDraw();
  ExperimentView View();

 private:
  Connection* const connection_;
  const Context* const context_;
  const v1::Experiment* const experiment_;

  Mutex mutex_;
  CondVar stop_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  ExperimentView view_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<v1::Experiment> Gatherer::Run() {
  absl::StatusOr<v1::Experiment> ended = Follow(
      connection_, *context_, *experiment_,
      [this](const v1::ExperimentEvent& event) {
        MutexLock lock(&mutex_);
        view_.event = event;
        view_.lost.reset();
        view_.notice.clear();
      },
      [this](const absl::Status& reason, absl::Time lost) {
        MutexLock lock(&mutex_);
        const bool away = absl::IsUnavailable(reason);
        view_.lost = away ? std::optional(lost) : std::nullopt;
        view_.notice = away ? "" : std::string(reason.message());
      });
  if (!ended.ok()) return ended;
  const auto comparison = CompareEnded(connection_, *ended);
  MutexLock lock(&mutex_);
  view_.ended = true;
  if (comparison.ok()) view_.comparison = *comparison;
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
  return view_;
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
