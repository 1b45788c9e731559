#include "client/output/experiment_state.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/worker_lanes.h"

namespace ablate::client {
namespace {

constexpr size_t kMaxLaneLosses = 512;
constexpr char kLoss[] = "train/loss";

bool HigherIsBetter(const v1::ExperimentSpec& spec, const std::string& key) {
  if (spec.report().has_better()) return spec.report().better() == v1::Better::higher;
  return absl::EndsWith(key, "accuracy");
}

// Such as "lr 0.003", or "lr 0.003 ×10, lr 0.01 ×2" if seeds chose different values.
std::string ChosenText(const v1::ComparisonRow& row) {
  std::vector<v1::ChosenValues> values(row.chosen().begin(), row.chosen().end());
  std::stable_sort(
      values.begin(), values.end(),
      [](const v1::ChosenValues& a, const v1::ChosenValues& b) { return a.seeds() > b.seeds(); });
  std::vector<std::string> parts;
  for (const v1::ChosenValues& value : values) {
    const std::map<std::string, std::string> labels(value.labels().begin(), value.labels().end());
    parts.push_back(absl::StrJoin(labels, " ", absl::PairFormatter(" ")));
    if (values.size() > 1) absl::StrAppend(&parts.back(), " ×", value.seeds());
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

ExperimentState::ExperimentState(const v1::Experiment& experiment) : spec_(experiment.spec()) {
  view_.id = Id(experiment.name());
  view_.question = spec_.question();
  view_.primary = PrimaryMetric(spec_);
  view_.higher_is_better = HigherIsBetter(spec_, view_.primary);
  view_.counts = experiment.counts();
  view_.stalled = experiment.stalled();
}

void ExperimentState::SetCells(const v1::ListRunsResponse& rows) {
  std::map<std::string, size_t> settings;
  std::map<std::pair<size_t, std::string>, size_t> combinations;
  for (const v1::RunRow& row : rows.rows()) {
    const std::map<std::string, std::string> labels(row.labels().begin(), row.labels().end());
    const std::string setting = SettingText(spec_, labels, /*tuned=*/false);
    const auto [place, is_new] = settings.emplace(setting, settings_.size());
    if (is_new) settings_.push_back(setting);
    const std::string chosen = SettingText(spec_, labels, /*tuned=*/true);
    const auto [combination, is_first] =
        combinations.emplace(std::pair(place->second, chosen), combinations_.size());
    if (is_first) combinations_.push_back({place->second, chosen});
    ++combinations_[combination->second].cells;
    cells_[row.cell()].combination = combination->second;
    const v1::Summary* summary = FindSummary(row, view_.primary);
    const double value = summary != nullptr && summary->has_last() ? summary->last() : NAN;
    SetResult(row.cell(), row.state(), summary == nullptr ? nullptr : &value);
  }
}

void ExperimentState::Count(const CellResult& cell, int sign) {
  Combination& combination = combinations_[cell.combination];
  if (cell.state == v1::RunState::DIVERGED) combination.diverged += sign;
  if (cell.state != v1::RunState::DONE || !cell.has_value) return;
  combination.n += sign;
  combination.sum += sign * cell.value;
}

void ExperimentState::SetResult(const std::string& cell, v1::RunState::Value state,
                                const double* value) {
  const auto found = cells_.find(cell);
  if (found == cells_.end()) return;
  CellResult& result = found->second;
  Count(result, -1);
  result.state = state;
  if (value != nullptr) {
    result.has_value = std::isfinite(*value);
    result.value = *value;
    // Comparisons count it as diverged, too.
    if (state == v1::RunState::DONE && !result.has_value) result.state = v1::RunState::DIVERGED;
  }
  Count(result, 1);
}

void ExperimentState::UpdateOpenRun(const v1::ExperimentEvent& event) {
  if (event.state() != v1::RunState::RUNNING) {
    open_.erase(event.run());
    asked_.erase(event.run());
    ended_or_queued_.insert(event.run());
    return;
  }
  ended_or_queued_.erase(event.run());
  const auto [place, is_new] = open_.try_emplace(event.run());
  OpenRun& run = place->second;
  if (is_new) {
    run.cell = event.cell();
    run.granted = ++grants_;
    run.seen_from = event.step();
  }
  const bool moved = event.step() != run.step;
  run.step = event.step();
  run.steps = event.steps();
  if (!moved) return;
  const auto loss = event.last().find(kLoss);
  if (loss == event.last().end()) return;
  run.losses.push_back(loss->second);
  if (run.losses.size() < kMaxLaneLosses) return;
  // Keeps every second one, and the newest.
  for (size_t i = 0; i < run.losses.size() / 2; ++i) run.losses[i] = run.losses[2 * i + 1];
  run.losses.resize(run.losses.size() / 2);
}

void ExperimentState::Update(const v1::ExperimentEvent& event, absl::Time now) {
  SetWaiting(std::nullopt, "");
  view_.counts = event.counts();
  view_.stalled = event.stalled();
  view_.analyses = event.has_analyses() ? AnalysesText(event.analyses()) : "";
  if (event.cell().empty()) return;
  work_.Update(event, now);
  UpdateOpenRun(event);
  const auto value = event.last().find(view_.primary);
  SetResult(event.cell(), event.state(), value == event.last().end() ? nullptr : &value->second);
}

void ExperimentState::SetWorkers(const v1::ListWorkersResponse& workers) { workers_ = workers; }

std::vector<std::string> ExperimentState::RunsOnLanes() const {
  std::vector<std::string> on_lanes;
  std::set<std::string> held;  // by workers
  size_t spare = 0;            // runs for which there are lanes
  const v1::BaseSpec& base = spec_.base();
  const uint32_t threads =
      base.has_program() ? base.program().threads() : base.training().threads();
  for (const v1::Worker& worker : workers_.workers()) {
    WorkerLanes lanes(worker);
    for (const std::string& run : worker.runs()) {
      if (ended_or_queued_.count(run) > 0) continue;  // since the list was made
      held.insert(run);
      const bool own = open_.count(run) > 0;
      if (lanes.Take(own ? threads : 1) && own) on_lanes.push_back(run);
    }
    while (lanes.Take(threads)) ++spare;
  }
  std::vector<std::pair<uint64_t, std::string>> others;  // granted since the list was made
  for (const auto& [name, run] : open_) {
    if (held.count(name) == 0) others.emplace_back(run.granted, name);
  }
  std::sort(others.begin(), others.end());
  others.resize(std::min(others.size(), spare));
  for (auto& [order, name] : others) on_lanes.push_back(std::move(name));
  return on_lanes;
}

uint64_t ExperimentState::CountOnLanes() const {
  return workers_.workers().empty() ? UINT64_MAX : RunsOnLanes().size();
}

std::vector<std::string> ExperimentState::TakeRunsWithoutCurve() {
  std::vector<std::string> runs;
  for (const std::string& run : RunsOnLanes()) {
    // A run that was seen from its first step on has its whole curve from events.
    if (asked_.insert(run).second && open_.at(run).seen_from > 0) runs.push_back(run);
  }
  return runs;
}

void ExperimentState::SetCurve(const v1::Series& series) {
  const auto run = open_.find(series.run());
  if (run == open_.end()) return;
  run->second.losses.assign(series.values().begin(), series.values().end());
}

void ExperimentState::SetWaiting(std::optional<absl::Time> lost, const std::string& notice) {
  view_.lost = lost;
  view_.notice = notice;
}

void ExperimentState::End(const v1::Experiment& experiment, const v1::Comparison* comparison) {
  view_.ended = true;
  view_.counts = experiment.counts();
  view_.stalled.clear();
  view_.fraction = 1;
  view_.analyses =
      experiment.has_analyses() ? AnalysesText(experiment.analyses(), /*over=*/true) : "";
  open_.clear();
  if (comparison == nullptr) return;
  view_.primary = comparison->key();
  view_.higher_is_better = comparison->better() == v1::Better::higher;
  view_.verdict = comparison->verdict().text();
  for (const v1::ComparisonRow& row : comparison->rows()) {
    SettingRow& setting = final_settings_.emplace_back();
    setting.setting = row.label();
    if (row.has_mean()) setting.mean = row.mean();
    setting.n = row.n();
    setting.diverged = row.diverged();
    setting.chosen = ChosenText(row);
  }
}

std::vector<SettingRow> ExperimentState::Settings() const {
  if (!final_settings_.empty()) return final_settings_;
  std::vector<SettingRow> rows(settings_.size());
  std::vector<const Combination*> best(settings_.size());
  // The best value of tuned axes so far is the one with the fewest diverged runs, then with the
  // best mean, as for comparisons, which select on other seeds.
  for (const Combination& one : combinations_) {
    if (one.n == 0) continue;
    const Combination*& other = best[one.setting];
    const auto mean = [](const Combination& c) { return c.sum / static_cast<double>(c.n); };
    const bool better =
        other == nullptr || one.diverged < other->diverged ||
        (one.diverged == other->diverged &&
         (view_.higher_is_better ? mean(one) > mean(*other) : mean(one) < mean(*other)));
    if (better) other = &one;
  }
  for (const Combination& one : combinations_) {
    SettingRow& row = rows[one.setting];
    row.setting = settings_[one.setting];
    row.seeds = std::max(row.seeds, one.cells);
    const bool alone = one.chosen.empty();
    if (best[one.setting] != &one && !alone) continue;
    row.n = one.n;
    row.diverged = one.diverged;
    row.chosen = one.chosen;
    if (one.n > 0) row.mean = one.sum / static_cast<double>(one.n);
  }
  return rows;
}

void ExperimentState::FillSlots() {
  const std::vector<std::string> on_lanes = RunsOnLanes();
  std::set<std::string> waiting(on_lanes.begin(), on_lanes.end());
  for (std::string& slot : slots_) {
    if (waiting.erase(slot) == 0) slot.clear();
  }
  for (std::string& slot : slots_) {
    if (!slot.empty() || waiting.empty()) continue;
    slot = *waiting.begin();
    waiting.erase(waiting.begin());
  }
  slots_.insert(slots_.end(), waiting.begin(), waiting.end());
  slots_.erase(std::remove(slots_.begin(), slots_.end(), ""), slots_.end());
}

ExperimentView ExperimentState::View() {
  FillSlots();
  ExperimentView view = view_;
  if (!view.ended) {
    view.fraction = work_.Fraction();
    view.steps_per_second = work_.StepsPerSecond();
    view.time_left = work_.TimeLeft();
  }
  for (const std::string& name : slots_) {
    const OpenRun& run = open_.at(name);
    LaneRow& lane = view.lanes.emplace_back();
    lane = {run.cell, run.step, run.steps, work_.StepsPerSecond(name), run.losses};
  }
  view.settings = Settings();
  return view;
}

}  // namespace ablate::client
