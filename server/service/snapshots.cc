#include "server/service/snapshots.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/results/trained_grid.h"
#include "server/service/convert.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

using storage::RunState;

constexpr char kTrainingLoss[] = "train/loss";
constexpr double kMostOfARun = 0.999;  // of a run that has made its steps and has not ended
constexpr int kMaxSettings = 200;
constexpr int kMaxFailed = 100;
constexpr absl::Duration kMinPause = absl::Milliseconds(250);
constexpr int kPausePerWork = 9;  // a tenth of a core at most
constexpr absl::Duration kOthersReading = absl::Milliseconds(20);

bool HasEnded(RunState state) { return state != RunState::kQueued && state != RunState::kLeased; }

// The cells at one combination of labels.
struct Total {
  uint32_t cells = 0, n = 0, diverged = 0;
  double sum = 0;

  double mean() const { return sum / n; }
};

// Returns true if `a` is better: it has a mean and the other has none, or a better one.
bool HasBetterMean(const Total& a, const Total& b, bool higher) {
  if (a.n == 0 || b.n == 0) return a.n > b.n;
  return higher ? a.mean() > b.mean() : a.mean() < b.mean();
}

// Returns true if `a` is the better choice of tuned values so far. Comparisons choose by the same
// rule on other seeds.
bool IsBetterChoice(const Total& a, const Total& b, bool higher) {
  if (a.n == 0 || b.n == 0 || a.diverged == b.diverged) return HasBetterMean(a, b, higher);
  return a.diverged < b.diverged;
}

}  // namespace

CellTally::CellTally(const v1::ExperimentSpec& spec)
    : primary_(results::PrimaryMetric(spec)),
      higher_is_better_(results::BetterOf(spec, primary_) == report::Better::kHigher) {
  for (const v1::Axis& axis : spec.axes()) tuned_.push_back(axis.tune());
}

bool CellTally::Run::is_open() const { return !HasEnded(state) && (steps == 0 || step > steps); }

int64_t CellTally::Run::left() const {
  return HasEnded(state) || step > steps ? 0 : int64_t{steps} - step;
}

size_t CellTally::CombinationOf(const storage::CellRecord& cell) {
  Combination one;
  for (size_t i = 0; i < cell.labels.size(); ++i) {
    one.labels.insert(cell.labels[i]);
    if (!tuned_[i]) one.fixed.insert(cell.labels[i]);
  }
  const auto [place, is_new] = combination_of_.emplace(one.labels, combinations_.size());
  if (!is_new) return place->second;
  one.setting = settings_.emplace(one.fixed, settings_.size()).first->second;
  combinations_.push_back(std::move(one));
  return place->second;
}

void CellTally::Update(const storage::CellRecord& record, const storage::RunSummaries& summaries) {
  if (record.index >= cells_.size()) cells_.resize(record.index + 1);
  Cell& cell = cells_[record.index];
  if (cell.name.empty()) {
    cell.name = record.name;
    const auto [place, is_new] = run_of_.emplace(record.run, runs_.size());
    if (is_new) runs_.push_back({.name = record.run, .cell = record.index});
    cell.run = place->second;
    cell.combination = CombinationOf(record);
  }
  cell.state = record.state;
  Run& run = runs_[cell.run];
  run.step = record.step;
  run.steps = record.steps;
  run.state = record.state;
  run.cell = std::min<size_t>(run.cell, record.index);
  const storage::Summary* newest = nullptr;
  for (const storage::Summary& summary : summaries.keys) {
    if (summary.key == primary_) cell.value = summary.last;
    if (summary.key == primary_ || (summary.key == kTrainingLoss && newest == nullptr)) {
      newest = &summary;
    }
  }
  if (newest == nullptr) return;
  newest_.set_cell(record.name);
  newest_.set_key(newest->key);
  newest_.set_value(newest->last);
}

void CellTally::UseNumbers(const analysis::AnalysisMetrics& numbers) {
  for (Cell& cell : cells_) {
    const analysis::Points* const points = numbers.Find(runs_[cell.run].name, primary_);
    if (points != nullptr) cell.value = points->values.back();
  }
}

double CellTally::Fraction() const {
  double done = 0;
  for (const Cell& cell : cells_) {
    const Run& run = runs_[cell.run];
    if (HasEnded(run.state)) {
      done += 1;
    } else if (run.steps > 0) {
      done += std::min(kMostOfARun, static_cast<double>(run.step) / run.steps);
    }
  }
  return cells_.empty() ? 0 : done / static_cast<double>(cells_.size());
}

void CellTally::AddLanes(const std::vector<schedule::WorkerInfo>& workers, v1::Snapshot* snapshot) {
  std::map<std::string, v1::Lane> lanes;  // by run
  for (const schedule::WorkerInfo& worker : workers) {
    for (const schedule::WorkerInfo::Training& training : worker.training) {
      const auto found = run_of_.find(training.run);
      if (found == run_of_.end()) continue;
      const Run& run = runs_[found->second];
      if (run.state != RunState::kLeased) continue;
      v1::Lane& lane = lanes[run.name];
      lane.set_worker(absl::StrCat("workers/", worker.name));
      lane.set_cell(cells_[run.cell].name);
      lane.set_step(run.step);
      lane.set_steps(run.steps);
      *lane.mutable_training() = ToProto(training);
    }
  }
  // Runs keep the places that they have, and others get the free places.
  std::set<std::string> others;
  for (const auto& [run, lane] : lanes) others.insert(run);
  for (std::string& place : on_lanes_) {
    if (others.erase(place) == 0) place.clear();
  }
  for (std::string& place : on_lanes_) {
    if (place.empty() && !others.empty()) place = others.extract(others.begin()).value();
  }
  on_lanes_.insert(on_lanes_.end(), others.begin(), others.end());
  std::erase(on_lanes_, "");
  for (const std::string& run : on_lanes_) *snapshot->add_lanes() = std::move(lanes.at(run));
}

void CellTally::AddTimes(absl::Duration now, v1::Snapshot* snapshot) {
  uint64_t made = 0;
  int64_t remaining = 0;
  bool open = false;
  for (const Run& run : runs_) {
    made += run.step;
    remaining += run.left();
    open = open || run.is_open();
  }
  made_.Add(now, made);
  const double rate = made_.PerSecond(now);
  snapshot->set_steps_per_second(rate);
  if (rate <= 0 || open) return;
  // A run takes at least the time that it needs at its own speed, because runs of one grid can
  // differ by far. Those that don't train yet have the speed of all.
  double longest = 0;
  int64_t others = remaining;
  for (const v1::Lane& lane : snapshot->lanes()) {
    const double own = lane.training().steps_per_second();
    if (own <= 0) continue;
    const int64_t left = int64_t{lane.steps()} - lane.step();
    longest = std::max(longest, static_cast<double>(left) / own);
    others -= left;
  }
  if (others > 0) longest = std::max(longest, static_cast<double>(remaining) / rate);
  snapshot->mutable_time_left()->set_seconds(static_cast<int64_t>(longest));
}

void CellTally::AddSettings(v1::Snapshot* snapshot) const {
  std::vector<Total> totals(combinations_.size());
  std::vector<size_t> in_order;  // combinations in grid order
  for (const Cell& cell : cells_) {
    Total& total = totals[cell.combination];
    if (total.cells++ == 0) in_order.push_back(cell.combination);
    const bool done = cell.state == RunState::kDone && cell.value.has_value();
    const bool finite = done && std::isfinite(*cell.value);
    // Comparisons count a run without a finite value as diverged, too.
    if (cell.state == RunState::kDiverged || (done && !finite)) ++total.diverged;
    if (!finite) continue;
    ++total.n;
    total.sum += *cell.value;
  }
  std::vector<size_t> best;  // combination of each setting, in grid order
  std::map<size_t, size_t> place_of;
  for (const size_t one : in_order) {
    const auto [place, is_new] = place_of.emplace(combinations_[one].setting, best.size());
    if (is_new) best.push_back(one);
    size_t& other = best[place->second];
    if (IsBetterChoice(totals[one], totals[other], higher_is_better_)) other = one;
  }
  std::stable_sort(best.begin(), best.end(), [&](size_t a, size_t b) {
    return HasBetterMean(totals[a], totals[b], higher_is_better_);
  });
  if (best.size() > kMaxSettings) best.resize(kMaxSettings);
  for (const size_t one : best) {
    const Total& total = totals[one];
    const Combination& combination = combinations_[one];
    v1::SettingMean& row = *snapshot->add_settings();
    const Labels& labels = total.n > 0 ? combination.labels : combination.fixed;
    row.mutable_labels()->insert(labels.begin(), labels.end());
    row.set_cells(total.cells);
    row.set_n(total.n);
    row.set_diverged(total.diverged);
    if (total.n > 0) row.set_mean(total.mean());
  }
}

v1::Snapshot CellTally::MakeSnapshot(const std::vector<schedule::WorkerInfo>& workers,
                                     absl::Duration now) {
  v1::Snapshot snapshot;
  snapshot.set_fraction(Fraction());
  AddLanes(workers, &snapshot);
  AddTimes(now, &snapshot);
  AddSettings(&snapshot);
  for (const Cell& cell : cells_) {
    if (cell.state != RunState::kFailed) continue;
    snapshot.add_failed(cell.name);
    if (snapshot.failed_size() == kMaxFailed) break;
  }
  if (!newest_.cell().empty()) *snapshot.mutable_newest() = newest_;
  return snapshot;
}

absl::StatusOr<bool> WatchedExperiment::ReadChanges() {
  storage::Store* const store = backend_->store;
  if (!tally_.has_value()) {
    ASSIGN_OR_RETURN(const auto stored, results::LoadExperiment(store, id_));
    tally_.emplace(stored.spec);
    const std::string& primary = tally_->primary();
    by_analysis_ =
        spec::EntryWithNumbers(stored.spec, primary.substr(0, primary.find('/'))).has_value();
  }
  ASSIGN_OR_RETURN(const auto cells, store->ChangedCells(id_, seen_, lookup::kCellsAtOnce));
  std::vector<std::string> runs;
  for (const storage::CellRecord& cell : cells) runs.push_back(cell.run);
  ASSIGN_OR_RETURN(const auto summaries, store->Summaries(runs));
  for (size_t i = 0; i < cells.size(); ++i) tally_->Update(cells[i], summaries[i]);
  if (!cells.empty()) seen_ = cells.back().change;
  return cells.size() >= lookup::kCellsAtOnce;
}

absl::Status WatchedExperiment::ReadNumbers(const storage::AnalysisCounts& analyses) {
  if (!by_analysis_ || analyses.done == analyses_done_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto numbers,
                   analysis::AnalysisMetrics::Load(backend_->store, id_, {tally_->primary()}));
  tally_->UseNumbers(numbers);
  analyses_done_ = analyses.done;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const v1::ExperimentEvent>> WatchedExperiment::Count(
    const storage::ExperimentRecord& record, const std::string& stalled, absl::Duration now) {
  ASSIGN_OR_RETURN(const bool more, ReadChanges());
  if (more) return nullptr;
  RETURN_IF_ERROR(ReadNumbers(record.analyses));
  std::vector<schedule::WorkerInfo> workers;
  backend_->scheduler->Run(
      [&workers](schedule::Scheduler& scheduler) { workers = scheduler.Workers(); });
  auto event = std::make_shared<v1::ExperimentEvent>();
  *event->mutable_counts() = ToProto(record.counts);
  if (record.analyses.any) *event->mutable_analyses() = ToProto(record.analyses);
  event->set_stalled(stalled);
  *event->mutable_snapshot() = tally_->MakeSnapshot(workers, now);
  return event;
}

absl::StatusOr<WatchedExperiment::Reading> WatchedExperiment::Read(absl::Duration now) {
  const uint64_t change = backend_->store->change_number();
  const std::string stalled = backend_->store->stalled();
  {
    MutexLock lock(&mutex_);
    if (last_.event != nullptr && change == change_ && stalled == stalled_) return last_;
  }
  // Before the cells: the end must be known before they are read, or a last change could be missed.
  ASSIGN_OR_RETURN(const auto record, backend_->store->GetExperiment(id_));
  const bool ended = record.state != storage::ExperimentState::kActive;
  {
    MutexLock lock(&mutex_);
    Reading reading = last_;
    reading.next.at = std::max(due_, now + kOthersReading);
    if (reading_ || (now < due_ && !ended)) return reading;
    reading_ = true;
  }
  const auto event = Count(record, ended ? "" : stalled, now);
  const absl::Duration end = MonotonicNow();
  MutexLock lock(&mutex_);
  reading_ = false;
  if (!event.ok()) return event.status();
  if (*event == nullptr) {
    Reading reading = last_;
    reading.next.at_once = true;
    return reading;
  }
  due_ = end + std::max(kMinPause, kPausePerWork * (end - now));
  change_ = change;
  stalled_ = stalled;
  last_.next.final = ended;
  using google::protobuf::util::MessageDifferencer;
  if (last_.event == nullptr || !MessageDifferencer::Equals(*last_.event, **event)) {
    last_.event = *event;
  }
  return last_;
}

std::shared_ptr<WatchedExperiment> WatchedExperiments::Find(Backend* backend,
                                                            const std::string& id) {
  MutexLock lock(&mutex_);
  std::erase_if(experiments_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<WatchedExperiment>& place = experiments_[id];
  std::shared_ptr<WatchedExperiment> found = place.lock();
  if (found == nullptr) place = found = std::make_shared<WatchedExperiment>(backend, id);
  return found;
}

}  // namespace ablate::service
