#include "server/service/analysis_planner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/comparison.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/results/compare.h"
#include "server/rpc/names.h"
#include "server/spec/experiment_analyses.h"

namespace ablate::service {
namespace {

// Commits come many in a second while runs train.
constexpr std::chrono::milliseconds kPause{50};
// While there is no room for more analyses, or on the disk.
constexpr std::chrono::milliseconds kBusyPause{1000};

bool MayPassByItself(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// Cells to analyze: of all runs that converged, or of those that a comparison reads.
struct AnalyzedCells {
  std::vector<std::string> all, chosen;
};

absl::StatusOr<AnalyzedCells> FindCells(storage::Store* store, const std::string& experiment,
                                        const results::Cancelled& cancelled) {
  auto stored = results::LoadExperiment(store, experiment);
  if (!stored.ok()) return stored.status();
  v1::CompareRequest request;
  request.set_experiment(rpc::ExperimentName(experiment));
  request.set_key(results::ChoiceMetric(stored->spec));
  const auto compared = results::CompareGrid(store, *std::move(stored), request, {cancelled, 0},
                                             results::AnalysisNumbers::kOfComparison);
  if (!compared.ok()) return compared.status();
  const std::vector<storage::CellRecord>& cells = compared->grid.cells;
  std::set<size_t> chosen;
  for (size_t row = 0; row < compared->rows.size(); ++row) {
    const auto& runs = compared->comparison.rows[row].runs;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i].diverged) chosen.insert(compared->rows[row][i]);
    }
  }
  AnalyzedCells analyzed;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].state == storage::RunState::kDone) analyzed.all.push_back(cells[i].name);
    if (chosen.count(i) > 0) analyzed.chosen.push_back(cells[i].name);
  }
  return analyzed;
}

v1::CreateAnalysisRequest RequestFor(const spec::AskedAnalysis& asked) {
  v1::CreateAnalysisRequest request;
  *request.mutable_analysis() = asked.analysis;
  *request.mutable_inputs() = asked.inputs;
  request.set_seed(asked.seed);
  request.set_label(asked.label);
  return request;
}

// One a cell and step, or one in all where it has no subject.
std::vector<v1::CreateAnalysisRequest> RequestsFor(const spec::AskedAnalysis& asked,
                                                   const std::string& experiment,
                                                   const AnalyzedCells& cells) {
  std::vector<v1::CreateAnalysisRequest> requests;
  if (asked.at.empty()) requests.push_back(RequestFor(asked));
  for (const std::string& cell : asked.all ? cells.all : cells.chosen) {
    for (const int32_t step : asked.at) {
      v1::CreateAnalysisRequest& request = requests.emplace_back(RequestFor(asked));
      v1::AnalysisSubject& subject = *request.add_subjects();
      subject.set_experiment(rpc::ExperimentName(experiment));
      subject.set_cell(cell);
      subject.set_step(step);
    }
  }
  return requests;
}

// What an experiment says of those that could not be asked for.
class Failures {
 public:
  void Add(const std::string& label, const absl::Status& why) {
    if (count_++ == 0) first_ = absl::StrCat(label, ": ", why.message());
  }
  std::string text() const {
    if (count_ < 2) return first_;
    return absl::StrCat(count_, " analyses could not be asked for; the first: ", first_);
  }

 private:
  size_t count_ = 0;
  std::string first_;
};

}  // namespace

AnalysisPlanner::AnalysisPlanner(Backend* backend) : backend_(backend) {
  thread_ = std::thread([this] { Loop(); });
}

AnalysisPlanner::~AnalysisPlanner() {
  Stop();
  thread_.join();
}

void AnalysisPlanner::Start() { Expect(); }

void AnalysisPlanner::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.Signal();
}

void AnalysisPlanner::Expect() {
  MutexLock lock(&mutex_);
  expects_ = woken_ = true;
  changed_.Signal();
}

void AnalysisPlanner::Notify() {
  MutexLock lock(&mutex_);
  if (!expects_) return;
  woken_ = true;
  changed_.Signal();
}

bool AnalysisPlanner::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void AnalysisPlanner::Loop() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!woken_ && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      // Whatever comes from here on is seen in the next round.
      woken_ = expects_ = false;
    }
    const bool left = PlanAll();
    MutexLock lock(&mutex_);
    expects_ = expects_ || left;
    if (!stopping_) changed_.WaitFor(&mutex_, kPause);
  }
}

bool AnalysisPlanner::PlanAll() {
  const auto unplanned = backend_->store->UnplannedExperiments();
  if (!unplanned.ok()) {
    spdlog::error("experiments' analyses can't be planned: {}", unplanned.status().ToString());
    return true;
  }
  bool left = unplanned->others;
  for (const std::string& experiment : unplanned->ready) {
    const absl::Status planned = Plan(experiment);
    if (planned.ok() || stopping()) continue;
    left = true;
    MutexLock lock(&mutex_);
    woken_ = true;
    if (!stopping_) changed_.WaitFor(&mutex_, kBusyPause);
  }
  return left;
}

absl::Status AnalysisPlanner::Plan(const std::string& experiment) {
  storage::Store* const store = backend_->store;
  Failures failures;
  const auto stored = results::LoadExperiment(store, experiment);
  const auto cells = FindCells(store, experiment, [this] { return stopping(); });
  if (stopping()) return absl::OkStatus();
  for (const absl::Status& found : {stored.status(), cells.status()}) {
    if (MayPassByItself(found)) return found;
    if (!found.ok()) return store->PlannedAnalyses(experiment, std::string(found.message()));
  }
  for (const spec::AskedAnalysis& asked : spec::AskedAnalyses(stored->spec)) {
    bool any = false;
    absl::Status refused;
    for (const v1::CreateAnalysisRequest& request : RequestsFor(asked, experiment, *cells)) {
      if (stopping()) return absl::OkStatus();
      v1::CreateAnalysisResponse response;
      const absl::Status made = CreateAnalysis(*backend_, request, experiment, &response);
      if (MayPassByItself(made)) return made;
      any = any || made.ok();
      if (absl::IsInvalidArgument(made)) {
        refused.Update(made);
      } else if (!made.ok()) {
        failures.Add(asked.label, made);
      }
    }
    // Some models may have no use for it, as those without a norm: the dry run has said so.
    if (!any && !refused.ok()) failures.Add(asked.label, refused);
  }
  return store->PlannedAnalyses(experiment, failures.text());
}

}  // namespace ablate::service
