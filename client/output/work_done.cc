#include "client/output/work_done.h"

#include <algorithm>

#include "client/output/experiment_text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(20);
constexpr absl::Duration kMinRateTime = absl::Seconds(1);
constexpr double kMostOfARun = 0.999;  // of a run that has made its steps and has not ended

}  // namespace

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
  samples_.emplace_back(now, made_);
  // One sample older than the window stays, so that the window is never shorter than the known
  // time.
  while (samples_.size() > 2 && now - samples_[1].first >= kRateWindow) samples_.pop_front();
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

double WorkDone::StepsPerSecond() const {
  if (samples_.empty()) return 0;
  const absl::Duration time = samples_.back().first - samples_.front().first;
  const int64_t steps = samples_.back().second - samples_.front().second;
  if (time < kMinRateTime || steps <= 0) return 0;
  return static_cast<double>(steps) / absl::ToDoubleSeconds(time);
}

absl::Duration WorkDone::TimeLeft() const {
  const double rate = StepsPerSecond();
  if (rate <= 0) return absl::InfiniteDuration();
  return absl::Seconds(static_cast<double>(remaining_) / rate);
}

}  // namespace ablate::client
