// `ablate top`: the server's workers, lanes and queue, drawn again until a key leaves it.
#include <unistd.h>

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

namespace ablate::client {
namespace {

constexpr absl::Duration kTopReadEvery = absl::Seconds(2);
constexpr absl::Duration kTopDrawEvery = absl::Milliseconds(200);
constexpr absl::Duration kTopAnswerTime = absl::Seconds(5);  // before the server counts as away
constexpr uint32_t kMaxTopRuns = 1'000;

struct TopOptions {
  bool json = false;
};

// One reading of the server.
struct Reading {
  v1::ListWorkersResponse workers;
  v1::ListExperimentsResponse experiments;
  v1::ListRunsResponse runs;  // that lanes train
};

// Reads the newest experiments, and older ones of which a lane trains a run.
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

absl::StatusOr<Reading> ReadServer(Connection* connection) {
  Reading reading;
  ASSIGN_OR_RETURN(reading.workers, connection->ListWorkersWithin(kTopAnswerTime));
  v1::ListRunsRequest request;
  request.set_experiment("experiments/-");
  request.set_filter("state = running");
  ASSIGN_OR_RETURN(reading.runs, ListFoundRuns(connection, std::move(request), kMaxTopRuns));
  RETURN_IF_ERROR(ReadExperiments(connection, &reading));
  return reading;
}

TopView ViewOf(const Reading& reading, bool owners) {
  TopView view;
  view.queued_analyses = reading.workers.queued_analyses();
  std::map<std::string, const v1::RunRow*> rows;  // by run, whose first cell it is
  for (const v1::RunRow& row : reading.runs.rows()) rows.emplace(row.run(), &row);
  for (const v1::Worker& worker : reading.workers.workers()) {
    WorkerRow& row = view.workers.emplace_back();
    row.worker = Id(worker.name());
    row.state = worker.stalled().empty() ? v1::WorkerState::Value_Name(worker.state())
                                         : absl::StrCat("STALLED: ", worker.stalled());
    row.device = worker.device();
    const bool trains =
        worker.role() != v1::WorkerRole::analysis && worker.state() != v1::WorkerState::AWAY;
    if (trains) row.lanes = worker.lanes();
    row.training = worker.busy_lanes();
    for (const v1::TrainingRun& run : worker.training()) {
      const auto found = rows.find(run.run());
      if (found == rows.end()) continue;
      const v1::RunRow& cell = *found->second;
      v1::Lane& lane = *view.lanes.Add();
      lane.set_cell(absl::StrCat(Id(cell.experiment()), "/", cell.cell()));
      lane.set_step(cell.step());
      lane.set_steps(cell.steps());
      *lane.mutable_training() = run;
    }
  }
  for (const v1::Experiment& experiment : reading.experiments.experiments()) {
    ActiveExperiment& row = view.experiments.emplace_back();
    const v1::RunCounts& counts = experiment.counts();
    row.experiment = Id(experiment.name());
    if (owners) row.owner = OwnerText(experiment);
    row.ended = EndedRuns(counts);
    row.all = AllRuns(counts);
    row.training = counts.running();
    row.queued = counts.queued();
    row.failed = counts.failed();
    row.analyses = uint64_t{experiment.analyses().queued()} + experiment.analyses().running();
    if (!experiment.stalled().empty()) view.stalled = experiment.stalled();
  }
  return view;
}

// Draws until q is pressed, Ctrl-C ends the process, or an error doesn't pass.
absl::Status ShowTop(Connection* connection, const Context& context, TopView view) {
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
    const auto reading = ReadServer(connection);
    if (reading.ok()) {
      view = ViewOf(*reading, ShowsOwners(*connection, reading->experiments.experiments()));
    } else if (!MayTryAgain(reading.status()) && !absl::IsDeadlineExceeded(reading.status())) {
      return reading.status();
    } else if (!view.lost.has_value()) {
      view.lost = context.now();
    }
  }
}

absl::StatusOr<int> Top(const TopOptions& options, const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const auto reading, ReadServer(connection));
  if (options.json) {
    context.console.data() << ToJsonArray({&reading.workers, &reading.experiments, &reading.runs});
    return kSuccess;
  }
  TopView view = ViewOf(reading, ShowsOwners(*connection, reading.experiments.experiments()));
  if (context.console.out_is_live()) {
    RETURN_IF_ERROR(ShowTop(connection, context, std::move(view)));
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
                "Print once, as an array: workers, active experiments, runs that lanes train");
  command->Footer(
      "On a terminal the screen is drawn again until q or Ctrl-C. In a pipe or file, and if TERM "
      "is dumb, it is printed once. Analyses left are those that an experiment's file asks for, "
      "queued or running.\n\n"
      "Example:\n  ablate top");
  return WithServer(options, Top);
}

}  // namespace ablate::client
