// Reads a run back and compares every value with the history that it claims.
#include "tests/schedule/simulation/checks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/schedule/simulation/worker_process.h"

namespace ablate::simulation {
namespace {

using storage::RunState;

struct Series {
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

absl::StatusOr<Series> Read(storage::Store& store, const std::string& run, const char* key) {
  Series series;
  storage::SeriesQuery query;
  query.run = run;
  query.key = key;
  const absl::Status status = store.ReadSeries(query, [&](const auto& steps, const auto& values) {
    series.steps.insert(series.steps.end(), steps.begin(), steps.end());
    series.values.insert(series.values.end(), values.begin(), values.end());
    return true;
  });
  if (absl::IsNotFound(status)) return Series();
  if (!status.ok()) return status;
  return series;
}

std::string CheckValues(const Series& series, const History& history, const char* key) {
  for (size_t i = 0; i < series.steps.size(); ++i) {
    const uint32_t step = series.steps[i];
    const double expected = Histories::Value(Histories::SegmentAt(history, step), step);
    if (series.values[i] != expected) {
      return absl::StrCat(key, " at step ", step, " is of segment ",
                          Histories::SegmentOf(series.values[i]), ", not ",
                          Histories::SegmentOf(expected));
    }
  }
  return "";
}

std::string CheckSummary(const storage::Summary& summary, const Series& series) {
  if (series.values.empty()) return "";
  const auto [min, max] = std::minmax_element(series.values.begin(), series.values.end());
  if (summary.count == series.values.size() && summary.nonfinite == 0 &&
      summary.first == series.values.front() && summary.last == series.values.back() &&
      summary.min == *min && summary.max == *max) {
    return "";
  }
  return absl::StrCat("the summary of ", summary.key, " has count ", summary.count, ", first ",
                      summary.first, ", last ", summary.last, "; there are ", series.values.size(),
                      " points");
}

// One run as the store has it.
class RunCheck {
 public:
  RunCheck(storage::Store& store, const Histories& histories, std::string run)
      : store_(store), histories_(histories), run_(std::move(run)) {}

  std::string Check() {
    const absl::StatusOr<storage::RunRecord> record = store_.GetRun(run_);
    if (!record.ok()) return record.status().ToString();
    record_ = *record;
    for (std::string origin = record_.origin; !origin.empty() && origins_.insert(origin).second;) {
      const absl::StatusOr<storage::RunRecord> shorter = store_.GetRun(origin);
      origin = shorter.ok() ? shorter->origin : "";
    }
    for (const auto check : {&RunCheck::CheckLosses, &RunCheck::CheckEvaluations,
                             &RunCheck::CheckArtifacts, &RunCheck::CheckSummaries}) {
      if (std::string problem = (this->*check)(); !problem.empty()) return problem;
    }
    return "";
  }

 private:
  bool done() const { return record_.state == RunState::kDone; }
  // Returns true if a state after so many steps may be the run's.
  bool IsMine(const TrainingState& state, uint32_t step) const {
    if (state.run == run_) return true;
    return step <= record_.origin_step && origins_.count(state.run) > 0;
  }

  std::string CheckLosses() {
    absl::StatusOr<Series> losses = Read(store_, run_, "train/loss");
    if (!losses.ok()) return losses.status().ToString();
    losses_ = *std::move(losses);
    for (size_t i = 0; i < losses_.steps.size(); ++i) {
      if (losses_.steps[i] != i) return absl::StrCat("losses jump to step ", losses_.steps[i]);
    }
    if (record_.step != losses_.steps.size()) {
      return absl::StrCat("at step ", record_.step, " with ", losses_.steps.size(), " losses");
    }
    if (done() && record_.step != record_.steps) return "DONE before its last step";
    if (losses_.values.empty()) return "";
    const TrainingState* segment =
        histories_.FindSegment(Histories::SegmentOf(losses_.values.back()));
    if (segment == nullptr || !IsMine(*segment, record_.step)) return "points of another run";
    history_ = segment->history;
    return CheckValues(losses_, history_, "train/loss");
  }

  std::string CheckEvaluations() {
    absl::StatusOr<Series> evaluations = Read(store_, run_, "eval/loss");
    if (!evaluations.ok()) return evaluations.status().ToString();
    evaluations_ = *std::move(evaluations);
    std::vector<uint32_t> expected;
    for (uint32_t step = 0; step < record_.step; step += kEvaluationEvery) expected.push_back(step);
    const bool has_last = !evaluations_.steps.empty() && record_.step == record_.steps &&
                          evaluations_.steps.back() == record_.steps;
    if (has_last) expected.push_back(record_.steps);
    if (evaluations_.steps != expected) return "evaluations are missing";
    if (!done()) {
      // The last one may come from a segment that made no step.
      if (has_last) Drop(&evaluations_);
      return CheckValues(evaluations_, history_, "eval/loss");
    }
    if (!has_last) return "DONE without its last evaluation";
    last_ = histories_.FindSegment(Histories::SegmentOf(evaluations_.values.back()));
    if (last_ == nullptr || last_->run != run_) return "an evaluation of another run";
    if (std::string problem = CheckValues(losses_, last_->history, "train/loss");
        !problem.empty()) {
      return absl::StrCat("beside the last evaluation, ", problem);
    }
    return CheckValues(evaluations_, last_->history, "eval/loss");
  }

  std::string CheckArtifacts() {
    const auto artifacts = store_.ListArtifacts(run_);
    if (!artifacts.ok()) return artifacts.status().ToString();
    std::set<uint32_t> steps;
    for (const storage::ArtifactRecord& artifact : *artifacts) {
      const TrainingState* state = histories_.FindBlob(artifact.blob);
      if (state == nullptr || !IsMine(*state, artifact.step) || state->step != artifact.step) {
        return absl::StrCat("the checkpoint of step ", artifact.step, " has another's blob");
      }
      if (artifact.step > record_.step) return "a checkpoint is ahead of the points";
      Series before;
      for (uint32_t step = 0; step < artifact.step; ++step) {
        before.steps.push_back(step);
        before.values.push_back(losses_.values[step]);
      }
      if (std::string problem = CheckValues(before, state->history, "train/loss");
          !problem.empty()) {
        return absl::StrCat("before the checkpoint of step ", artifact.step, ", ", problem);
      }
      if (done() && artifact.step == record_.steps &&
          state->history.back().segment != last_->history.back().segment) {
        return "DONE with another segment's last checkpoint";
      }
      steps.insert(artifact.step);
    }
    if (done() && steps != std::set<uint32_t>{kCheckpointStep, record_.steps}) {
      return "DONE without its checkpoints";
    }
    return "";
  }

  std::string CheckSummaries() {
    const auto summaries = store_.Summaries({run_});
    if (!summaries.ok()) return summaries.status().ToString();
    size_t found = 0;
    for (const storage::Summary& summary : summaries->front().keys) {
      const Series* series = summary.key == "train/loss" ? &losses_ : &evaluations_;
      if (series == &evaluations_ && dropped_last_) continue;
      found += series->values.empty() ? 0 : 1;
      if (std::string problem = CheckSummary(summary, *series); !problem.empty()) return problem;
    }
    return found > 0 || losses_.values.empty() ? "" : "the summaries are missing";
  }

  void Drop(Series* series) {
    series->steps.pop_back();
    series->values.pop_back();
    dropped_last_ = true;
  }

  storage::Store& store_;
  const Histories& histories_;
  const std::string run_;
  storage::RunRecord record_;
  std::set<std::string> origins_;  // its origin, and the origin's origins
  Series losses_;
  Series evaluations_;
  bool dropped_last_ = false;
  History history_;
  const TrainingState* last_ = nullptr;
};

}  // namespace

std::string CheckRun(storage::Store& store, const Histories& histories, const std::string& run) {
  std::string problem = RunCheck(store, histories, run).Check();
  return problem.empty() ? "" : absl::StrCat("run ", run, ": ", problem);
}

std::string CheckHandedOut(storage::Store& store, const worker::v1::Grant& grant) {
  const auto leases = store.ListLeases();
  if (!leases.ok()) return leases.status().ToString();
  const bool stored = std::any_of(leases->begin(), leases->end(), [&](const auto& lease) {
    return lease.lease == grant.lease() && lease.run == grant.run().run();
  });
  if (stored) return "";
  return absl::StrCat("run ", grant.run().run(), " is handed out under ", grant.lease(),
                      ", under which the store does not have it");
}

std::string CheckLeases(storage::Store& store) {
  const auto leases = store.ListLeases();
  if (!leases.ok()) return leases.status().ToString();
  std::set<std::string> names, leased;
  for (const storage::LeaseRecord& lease : *leases) {
    if (!leased.insert(lease.run).second) {
      return absl::StrCat("run ", lease.run, " is under two leases");
    }
    if (!names.insert(lease.lease).second) {
      return absl::StrCat("lease ", lease.lease, " has two runs");
    }
  }
  return "";
}

}  // namespace ablate::simulation
