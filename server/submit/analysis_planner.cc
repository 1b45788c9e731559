#include "server/submit/analysis_planner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/analysis/document_facts.h"
#include "server/analysis/subjects.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/names.h"
#include "server/results/analyzed_cells.h"

namespace ablate::submit {
namespace {

// Pause between rounds: there are many commits a second while runs train.
constexpr std::chrono::milliseconds kPause{50};
constexpr std::chrono::milliseconds kLongPause{1000};

bool MayPassByItself(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

v1::CreateAnalysisRequest RequestFor(const spec::AskedAnalysis& asked) {
  v1::CreateAnalysisRequest request;
  *request.mutable_analysis() = asked.analysis;
  *request.mutable_inputs() = asked.inputs;
  request.set_seed(asked.seed);
  request.set_label(asked.label);
  return request;
}

// Returns one request per step, or one for all.
std::vector<v1::CreateAnalysisRequest> RequestsFor(const spec::AskedAnalysis& asked,
                                                   const std::string& experiment,
                                                   const std::string& cell) {
  std::vector<v1::CreateAnalysisRequest> requests;
  const auto add_subject = [&]() -> v1::AnalysisSubject& {
    v1::AnalysisSubject& subject = *requests.back().add_subjects();
    subject.set_experiment(lookup::ExperimentName(experiment));
    subject.set_cell(cell);
    return subject;
  };
  if (asked.together) requests.push_back(RequestFor(asked));
  if (asked.together && asked.at.empty()) add_subject();
  for (const int32_t step : asked.at) {
    if (!asked.together) requests.push_back(RequestFor(asked));
    add_subject().set_step(step);
  }
  return requests;
}

// Returns the size of the texts of a data set; 0: unknown, or none is named.
uint64_t TextBytesNamed(storage::Store* store, const std::string& dataset) {
  if (dataset.empty()) return 0;
  const auto found = lookup::FindDataset({store, storage::kServer}, dataset, "inputs.dataset");
  if (!found.ok()) return 0;  // the request for the analysis reports it
  return analysis::TextBytesOf(store, *found).value_or(0);
}

}  // namespace

// Collects the failures that an experiment reports.
class AnalysisPlanner::Failures {
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

AnalysisPlanner::AnalysisPlanner(storage::Store* store, Create create)
    : store_(store), create_(std::move(create)) {
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
  expects_ = woken_ = expected_ = true;
  changed_.Signal();
}

void AnalysisPlanner::Notify() {
  MutexLock lock(&mutex_);
  woken_ = true;
  if (expects_) changed_.Signal();
}

bool AnalysisPlanner::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void AnalysisPlanner::Loop() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && !expects_) changed_.Wait(&mutex_);
      // Also without a signal: a cause such as a full disk may have passed.
      if (!stopping_ && !woken_) changed_.WaitFor(&mutex_, kLongPause);
      if (stopping_) return;
      // Anything from here on is handled in the next round.
      woken_ = expected_ = false;
    }
    const bool left = PlanAll();
    MutexLock lock(&mutex_);
    expects_ = left || expected_;
    const auto next = std::chrono::steady_clock::now() + kPause;
    while (!stopping_ && std::chrono::steady_clock::now() < next) {
      changed_.WaitFor(&mutex_, kPause);
    }
  }
}

bool AnalysisPlanner::PlanAll() {
  const auto unplanned = store_->UnplannedExperiments();
  if (!unplanned.ok()) {
    spdlog::error("experiments' analyses can't be planned: {}", unplanned.status().ToString());
    return true;
  }
  bool left = unplanned->others;
  for (const storage::UnplannedExperiment& experiment : unplanned->ready) {
    const absl::Status planned = Plan(experiment);
    if (planned.ok() || absl::IsCancelled(planned) || stopping()) continue;
    spdlog::warn("analyses of {} can't be requested yet: {}", experiment.id, planned.ToString());
    left = true;
  }
  return left;
}

absl::Status AnalysisPlanner::Plan(const storage::UnplannedExperiment& unplanned) {
  const std::string& experiment = unplanned.id;
  auto stored = results::LoadExperiment(store_, experiment);
  if (!stored.ok()) return GiveUp(unplanned, stored.status());
  const std::vector<spec::AskedAnalysis> entries = spec::AskedAnalyses(stored->spec);
  const auto cells =
      results::FindAnalyzedCells(store_, *std::move(stored), [this] { return stopping(); });
  if (stopping()) return absl::OkStatus();
  if (!cells.ok()) return GiveUp(unplanned, cells.status());
  Failures failures;
  for (const spec::AskedAnalysis& asked : entries) {
    if (!asked.of_runs) {
      RETURN_IF_ERROR(Ask(RequestFor(asked), experiment, &failures));
    }
    spec::AskedAnalysis resolved = asked;
    const auto options = spec::ResolveAsked(&resolved);
    resolved.text_bytes = TextBytesNamed(store_, asked.inputs.dataset());
    for (const storage::CellRecord& cell : asked.all ? cells->all : cells->chosen) {
      if (!asked.of_runs) break;
      // Some models can't be analyzed so, as those without a norm; the dry run has reported it.
      const auto model = analysis::ModelOfRun(store_, cell.run);
      const bool of_use = options.has_value() && model.ok() &&
                          spec::CanBeAskedOf(resolved, *options, model->config);
      if (model.ok() && !of_use) continue;
      for (const v1::CreateAnalysisRequest& request : RequestsFor(asked, experiment, cell.name)) {
        RETURN_IF_ERROR(Ask(request, experiment, &failures));
        if (stopping()) return absl::OkStatus();
      }
    }
  }
  return store_->PlannedAnalyses(unplanned, failures.text());
}

absl::Status AnalysisPlanner::Ask(const v1::CreateAnalysisRequest& request,
                                  const std::string& experiment, Failures* failures) {
  const auto asker = store_->GetExperiment(experiment);
  if (absl::IsNotFound(asker.status())) return absl::CancelledError("the experiment was deleted");
  if (!asker.ok()) return asker.status();
  absl::Status made = create_(request, asker->owner, experiment);
  if (made.ok() || MayPassByItself(made)) return made;
  const auto record = store_->GetExperiment(experiment);
  const bool wanted = record.ok() && record->state == storage::ExperimentState::kActive;
  if (!wanted) return absl::CancelledError("the experiment is no longer active");
  failures->Add(request.label(), made);
  return absl::OkStatus();
}

absl::Status AnalysisPlanner::GiveUp(const storage::UnplannedExperiment& experiment,
                                     const absl::Status& why) {
  if (MayPassByItself(why)) return why;
  return store_->PlannedAnalyses(experiment, std::string(why.message()));
}

}  // namespace ablate::submit
