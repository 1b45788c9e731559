// `ablate top`: the server's workers, lanes and queue, drawn again until a key leaves it.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/found_runs.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/output/screen.h"
#include "client/output/top_screen.h"
#include "client/output/worker_lanes.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kTopReadEvery = absl::Seconds(2);
constexpr absl::Duration kTopDrawEvery = absl::Milliseconds(200);
constexpr absl::Duration kTopAnswerTime = absl::Seconds(5);  // before the server counts as away
constexpr uint32_t kMaxTopRuns = 1'000;
constexpr size_t kMaxTopLosses = 512;
constexpr char kThreads[] = "training.threads";

struct TopOptions {
  bool json = false;
};

// One reading of the server.
struct Reading {
  absl::Time time;
  v1::ListWorkersResponse workers;
  v1::ListExperimentsResponse experiments;
  v1::ListRunsResponse runs;          // that workers hold
  v1::ListAnalysesResponse analyses;  // the newest; empty if the server lists none
};

// Reads the newest experiments, and older ones of which a worker holds a run.
absl::Status ReadExperiments(Connection* connection, Reading* reading) {
  ASSIGN_OR_RETURN(auto newest, connection->Call(kListExperiments, {}));
  std::set<std::string> known;
  for (v1::Experiment& experiment : *newest.mutable_experiments()) {
    known.insert(experiment.name());
    if (experiment.state() != v1::ExperimentState::ACTIVE) continue;
    *reading->experiments.add_experiments() = std::move(experiment);
  }
  for (const v1::RunRow& row : reading->runs.rows()) {
    if (!known.insert(row.experiment()).second) continue;
    v1::GetExperimentRequest get;
    get.set_name(row.experiment());
    auto experiment = connection->Call(kGetExperiment, get);
    if (absl::IsNotFound(experiment.status())) continue;  // removed since
    if (!experiment.ok()) return experiment.status();
    *reading->experiments.add_experiments() = *std::move(experiment);
  }
  return absl::OkStatus();
}

absl::StatusOr<Reading> ReadServer(Connection* connection, const Context& context) {
  Reading reading;
  ASSIGN_OR_RETURN(reading.workers, connection->ListWorkersWithin(kTopAnswerTime));
  v1::ListRunsRequest request;
  request.set_experiment("experiments/-");
  request.set_filter("state = running");
  request.add_columns(kThreads);
  ASSIGN_OR_RETURN(reading.runs, ListFoundRuns(connection, std::move(request), kMaxTopRuns));
  RETURN_IF_ERROR(ReadExperiments(connection, &reading));
  if (auto analyses = connection->Call(kListAnalyses, {}); analyses.ok()) {
    reading.analyses = *std::move(analyses);
  }
  reading.time = context.now();
  return reading;
}

// Makes views of readings; remembers the curves and the last steps of the runs on lanes.
class TopState {
 public:
  TopView View(const Reading& reading, bool owners);

 private:
  struct SeenRun {
    absl::Time time;
    uint32_t step = 0;
    std::vector<double> losses;
  };
  LaneRow Lane(const v1::RunRow& row, absl::Time now, std::map<std::string, SeenRun>* seen) const;
  std::map<std::string, SeenRun> seen_;  // by run
};

LaneRow TopState::Lane(const v1::RunRow& row, absl::Time now,
                       std::map<std::string, SeenRun>* seen) const {
  LaneRow lane;
  lane.cell = absl::StrCat(Id(row.experiment()), "/", row.cell());
  lane.step = row.step();
  lane.steps = row.steps();
  const auto before = seen_.find(row.run());
  if (before != seen_.end()) {
    lane.losses = before->second.losses;
    if (row.step() > before->second.step && now > before->second.time) {
      lane.steps_per_second =
          (row.step() - before->second.step) / absl::ToDoubleSeconds(now - before->second.time);
    }
  }
  const v1::Summary* loss = FindSummary(row, "train/loss");
  if (loss != nullptr && loss->has_last()) lane.losses.push_back(loss->last());
  if (lane.losses.size() > kMaxTopLosses) lane.losses.erase(lane.losses.begin());
  (*seen)[row.run()] = {now, row.step(), lane.losses};
  return lane;
}

TopView TopState::View(const Reading& reading, bool owners) {
  TopView view;
  std::map<std::string, const v1::RunRow*> rows;  // by run, whose first cell it is
  for (const v1::RunRow& row : reading.runs.rows()) rows.emplace(row.run(), &row);
  std::map<std::string, SeenRun> seen;
  std::set<std::string> training;
  for (const v1::Worker& worker : reading.workers.workers()) {
    WorkerRow& row = view.workers.emplace_back();
    row.worker = Id(worker.name());
    row.state = worker.stalled().empty() ? v1::WorkerState::Value_Name(worker.state())
                                         : absl::StrCat("STALLED: ", worker.stalled());
    row.device = worker.device();
    WorkerLanes lanes(worker);
    row.lanes = lanes.count();
    for (const std::string& run : worker.runs()) {
      const auto found = rows.find(run);
      const bool known = found != rows.end() && found->second->values_size() > 0;
      if (!lanes.Take(known ? static_cast<uint32_t>(found->second->values(0).number_value()) : 1)) {
        break;
      }
      training.insert(run);
      if (known) view.lanes.push_back(Lane(*found->second, reading.time, &seen));
    }
    row.training = std::min(row.lanes, lanes.taken() + worker.hidden_runs());
  }
  std::map<std::string, uint64_t> on_lanes;  // cells by experiment
  for (const v1::RunRow& row : reading.runs.rows()) {
    if (training.count(row.run()) > 0) ++on_lanes[row.experiment()];
  }
  uint64_t planned = 0;  // analyses that experiments wait for
  for (const v1::Experiment& experiment : reading.experiments.experiments()) {
    ActiveExperiment& row = view.experiments.emplace_back();
    const v1::RunCounts& counts = experiment.counts();
    row.experiment = Id(experiment.name());
    if (owners) row.owner = OwnerText(experiment);
    row.ended = EndedRuns(counts);
    row.all = AllRuns(counts);
    row.training = std::min(on_lanes[experiment.name()], row.all - row.ended);
    row.queued = row.all - row.ended - row.training;
    row.failed = counts.failed();
    row.analyses = uint64_t{experiment.analyses().queued()} + experiment.analyses().running();
    planned += experiment.analyses().queued();
    if (!experiment.stalled().empty()) view.stalled = experiment.stalled();
  }
  // The newest may be of experiments, too.
  const auto queued = std::count_if(
      reading.analyses.analyses().begin(), reading.analyses.analyses().end(),
      [](const v1::Analysis& analysis) { return analysis.state() == v1::AnalysisState::QUEUED; });
  view.queued_analyses = std::max(planned, static_cast<uint64_t>(queued));
  seen_ = std::move(seen);
  return view;
}

// Draws until q is pressed, Ctrl-C ends the process, or an error doesn't pass.
absl::Status ShowTop(Connection* connection, const Context& context, TopState* state,
                     TopView view) {
  const Console& console = context.console;
  const Keys keys(console.in_is_terminal ? STDIN_FILENO : -1);
  Screen screen(console.out, console.FileOf(console.out), {console.width, WindowSize().height}, "");
  while (true) {
    for (absl::Time read = context.now(); context.now() - read < kTopReadEvery;) {
      const WindowSize size = screen.size();
      view.live = keys.is_terminal();
      screen.Draw(TopScreen(view, size.width, size.height, context.now()));
      if (!keys.is_terminal()) {
        context.sleep(kTopDrawEvery);
      } else if (keys.WaitFor('q', kTopDrawEvery)) {
        return absl::OkStatus();
      }
    }
    const auto reading = ReadServer(connection, context);
    if (reading.ok()) {
      view = state->View(*reading, ShowsOwners(*connection, reading->experiments.experiments()));
    } else if (!MayTryAgain(reading.status()) && !absl::IsDeadlineExceeded(reading.status())) {
      return reading.status();
    } else if (!view.lost.has_value()) {
      view.lost = context.now();
    }
  }
}

absl::StatusOr<int> Top(const TopOptions& options, const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const auto reading, ReadServer(connection, context));
  if (options.json) {
    context.console.data() << ToJsonArray({&reading.workers, &reading.experiments, &reading.runs});
    return kSuccess;
  }
  TopState state;
  TopView view = state.View(reading, ShowsOwners(*connection, reading.experiments.experiments()));
  if (context.console.out_is_live()) {
    RETURN_IF_ERROR(ShowTop(connection, context, &state, std::move(view)));
    return kSuccess;
  }
  for (const std::string& line :
       TopScreen(view, context.console.table_width(), /*height=*/0, context.now())) {
    *context.console.out << line << "\n";
  }
  return kSuccess;
}

}  // namespace

Action DefineTop(Command* command) {
  auto options = std::make_shared<TopOptions>();
  command->Flag(&options->json, "--json",
                "Print once, as an array: workers, active experiments, runs that workers hold");
  command->Footer(
      "On a terminal the screen is drawn again until q or Ctrl-C. In a pipe or file, and if TERM "
      "is dumb, it is printed once. Runs that wait in a worker for one of its lanes count as "
      "queued. Analyses left are those that an experiment's file asks for, queued or running.\n\n"
      "Example:\n  ablate top");
  return WithServer(options, Top);
}

}  // namespace ablate::client
