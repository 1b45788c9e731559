#include "client/output/work_done.h"

#include <algorithm>

#include "client/output/experiment_text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(20);
constexpr absl::Duration kMinRateTime = absl::Seconds(1);
constexpr absl::Duration kRunRateWindow = absl::Seconds(10);
constexpr absl::Duration kMinRunRateTime = absl::Milliseconds(500);
constexpr double kMostOfARun = 0.999;  // of a run that has made its steps and has not ended

}  // namespace

void GrowthRate::Add(absl::Time now, int64_t count) {
  if (!samples_.empty() && count < samples_.back().second) samples_.clear();
  samples_.emplace_back(now, count);
  // One sample older than the window stays, so that the window is never shorter than the known
  // time.
  while (samples_.size() > 2 && now - samples_[1].first >= window_) samples_.pop_front();
}

double GrowthRate::PerSecond() const {
  if (samples_.empty()) return 0;
  const absl::Duration time = samples_.back().first - samples_.front().first;
  if (time < least_) return 0;
  return static_cast<double>(samples_.back().second - samples_.front().second) /
         absl::ToDoubleSeconds(time);
}

WorkDone::WorkDone() : rate_(kRateWindow, kMinRateTime) {}

void WorkDone::Count(const v1::ExperimentEvent& event, absl::Time now) {
  const auto [found, is_new] = runs_.try_emplace(event.run());
  RunProgress& run = found->second;
  const auto left = [](const RunProgress& r) -> int64_t {
    return r.ended || r.step > r.steps ? 0 : r.steps - r.step;
  };
  const RunProgress before = run;
  run = {event.step(), event.steps(), HasEnded(event.state())};
  remaining_ += left(run) - (is_new ? 0 : left(before));
  if (!is_new) made_ += int64_t{run.step} - int64_t{before.step};
  rate_.Add(now, made_);
  if (event.state() != v1::RunState::RUNNING) {
    training_.erase(event.run());
  } else if (run.step != before.step) {
    // Only after its first steps a run surely has a lane.
    const GrowthRate unknown(kRunRateWindow, kMinRunRateTime);
    TrainingRun& training =
        training_.try_emplace(event.run(), TrainingRun{0, unknown}).first->second;
    training.left = left(run);
    training.rate.Add(now, run.step);
  }
}

WorkDone::Change WorkDone::Update(const v1::ExperimentEvent& event, absl::Time now) {
  Count(event, now);
  double fraction = 0;
  if (HasEnded(event.state())) {
    fraction = 1;
  } else if (event.steps() > 0) {
    fraction = std::min(kMostOfARun, static_cast<double>(event.step()) / event.steps());
  }
  const auto [cell, is_new] = cells_.try_emplace(event.cell(), 0);
  const double before = std::exchange(cell->second, fraction);
  done_ += fraction - before;
  all_ = AllRuns(event.counts());
  return {is_new, before == 1};
}

double WorkDone::Fraction() const {
  const uint64_t all = std::max<uint64_t>({all_, cells_.size(), 1});
  return done_ / static_cast<double>(all);
}

double WorkDone::StepsPerSecond(const std::string& run) const {
  const auto found = training_.find(run);
  return found == training_.end() ? 0 : found->second.rate.PerSecond();
}

absl::Duration WorkDone::TimeLeft() const {
  const double rate_of_all = StepsPerSecond();
  if (rate_of_all <= 0) return absl::InfiniteDuration();
  double longest = 0;
  int64_t others = remaining_;
  for (const auto& [name, run] : training_) {
    const double rate = run.rate.PerSecond();
    if (rate <= 0) continue;
    longest = std::max(longest, static_cast<double>(run.left) / rate);
    others -= run.left;
  }
  if (others > 0) longest = std::max(longest, static_cast<double>(remaining_) / rate_of_all);
  return absl::Seconds(longest);
}

}  // namespace ablate::client
