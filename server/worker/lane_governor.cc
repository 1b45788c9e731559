#include "server/worker/lane_governor.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace ablate::worker {
namespace {

constexpr double kGrowth = 1.1;
// A run's first steps include its data, its first evaluation and the capture of its graphs.
constexpr absl::Duration kWarmUp = absl::Seconds(3);
constexpr absl::Duration kWindow = absl::Seconds(5);
constexpr absl::Duration kLongestWindow = absl::Minutes(2);
constexpr uint64_t kFewestSteps = 20;
// After this time a measurement needn't wait until all runs are warm: some are too short for that.
constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr double kBusy = 0.9;  // share of the lanes that train in a measurement
constexpr int kAttempts = 2;   // to measure before lanes are added without
constexpr absl::Duration kTryAgain = absl::Minutes(10);
constexpr absl::Duration kTryOtherRuns = absl::Minutes(1);
constexpr double kOtherSpeed = 2;
// Runs that run out of memory together shrink the number once.
constexpr absl::Duration kBetweenShrinks = absl::Seconds(30);

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double SpeedOf(const std::map<std::string, double>& rates) {
  std::vector<double> values;
  for (const auto& [id, rate] : rates) values.push_back(rate);
  return Median(std::move(values));
}

}  // namespace

void LaneGovernor::Observe(absl::Duration now, const std::vector<LaneJob>& jobs) {
  Update(now, jobs);
  const bool lost = lanes_before_ > 0 && std::none_of(before_.begin(), before_.end(), [&](auto& b) {
                      return jobs_.contains(b.first);
                    });
  if (lost) {
    // Nothing can be compared any more: the smaller number is measured again.
    if (++unmeasured_ < kAttempts) {
      lanes_ = lanes_before_;
    } else {
      unmeasured_ = 0;
      settled_.reset();
    }
    Restart();
  } else if (Measure(now)) {
    Compare(now, Measured(now));
  } else {
    GrowForShortRuns(now);
  }
}

void LaneGovernor::OutOfMemory(absl::Duration now) {
  if (shrunk_.has_value() && now - *shrunk_ < kBetweenShrinks) return;
  shrunk_ = now;
  Settle(now, std::max(lanes_ / 2, 1), std::nullopt);
}

void LaneGovernor::Update(absl::Duration now, const std::vector<LaneJob>& jobs) {
  std::set<std::string> present;
  for (const LaneJob& job : jobs) {
    present.insert(job.id);
    const auto [known, added] = jobs_.try_emplace(job.id, Job{now, job.steps, {}, {}});
    if (!known->second.stepping.has_value() && job.steps != known->second.steps) {
      known->second.stepping = now;
    }
    known->second.steps = job.steps;
  }
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    if (present.contains(it->first)) {
      ++it;
      continue;
    }
    // A very short one is seen once, so that it need not have been seen to make steps.
    short_runs_ += now - it->second.since < kWarmUp + kWindow;
    it = jobs_.erase(it);
  }
}

bool LaneGovernor::Measure(absl::Duration now) {
  const auto warm = [now](const auto& named) {
    return named.second.stepping.has_value() && now - *named.second.stepping >= kWarmUp;
  };
  // Without those that wait for memory.
  const auto train = std::count_if(jobs_.begin(), jobs_.end(), [now](const auto& named) {
    return named.second.stepping.has_value() || now - named.second.since < kWarmUp + kWindow;
  });
  if (!measuring_.has_value()) {
    if (train != lanes_) return false;
    if (!busy_.has_value()) busy_ = now;
    const bool all_warm = std::all_of(jobs_.begin(), jobs_.end(), warm);
    if (!all_warm && now - *busy_ < kPatience) return false;
    measuring_ = now;
    busy_.reset();
    samples_ = in_use_ = 0;
    for (auto& [id, job] : jobs_) job.from.reset();
  }
  for (auto& named : jobs_) {
    Job& job = named.second;
    if (job.from.has_value() || !warm(named)) continue;
    job.from = now;
    job.from_steps = job.steps;
  }
  ++samples_;
  in_use_ += static_cast<double>(train);
  const absl::Duration took = now - *measuring_;
  if (took < kWindow) return false;
  if (in_use_ / samples_ < kBusy * lanes_) {
    measuring_.reset();
    return false;
  }
  const auto slow = [now](const auto& named) {
    const Job& job = named.second;
    return job.from.has_value() && now - *job.from >= kWindow &&
           job.steps - job.from_steps < kFewestSteps;
  };
  const bool enough = std::none_of(jobs_.begin(), jobs_.end(), slow);
  if (took < kLongestWindow && !enough) return false;
  if (!Measured(now).empty()) return true;
  if (took >= kLongestWindow) measuring_.reset();
  return false;
}

LaneGovernor::Rates LaneGovernor::Measured(absl::Duration now) const {
  Rates rates;
  for (const auto& [id, job] : jobs_) {
    if (!job.from.has_value() || now - *job.from < kWindow) continue;
    const uint64_t made = job.steps - job.from_steps;
    if (made < kFewestSteps) continue;
    rates[id] = static_cast<double>(made) / absl::ToDoubleSeconds(now - *job.from);
  }
  return rates;
}

void LaneGovernor::Compare(absl::Duration now, Rates rates) {
  const double busy = in_use_ / samples_;
  if (lanes_before_ == 0) {
    busy_before_ = busy;
    measuring_.reset();
    short_runs_ = 0;
    if (MayTry(now, SpeedOf(rates))) Grow(std::move(rates));
    return;
  }
  std::vector<double> ratios;
  for (const auto& [id, rate] : rates) {
    const auto before = before_.find(id);
    if (before != before_.end()) ratios.push_back(rate / before->second);
  }
  if (ratios.empty()) return;  // the runs that can be compared aren't measured yet
  unmeasured_ = 0;
  if (Median(std::move(ratios)) * busy / busy_before_ < kGrowth) {
    return Settle(now, lanes_before_, SpeedOf(before_));
  }
  Restart();
  settled_.reset();
  busy_before_ = busy;
  Grow(std::move(rates));
}

bool LaneGovernor::MayTry(absl::Duration now, std::optional<double> speed) const {
  if (!settled_.has_value() || now - *settled_ >= kTryAgain) return true;
  if (now - *settled_ < kTryOtherRuns || !speed_.has_value()) return false;
  if (!speed.has_value()) return true;
  const double change = *speed / *speed_;
  return change >= kOtherSpeed || change <= 1 / kOtherSpeed;
}

void LaneGovernor::GrowForShortRuns(absl::Duration now) {
  const auto lasts = [now](const auto& named) {
    return now - named.second.since >= kWarmUp + kWindow;
  };
  if (std::any_of(jobs_.begin(), jobs_.end(), lasts)) short_runs_ = 0;
  if (short_runs_ < 2 * static_cast<size_t>(lanes_)) return;
  if (!MayTry(now, std::nullopt)) return;
  lanes_ = std::min(2 * lanes_, most_);
  settled_.reset();
  Restart();
}

void LaneGovernor::Grow(Rates before) {
  if (lanes_ == most_) return;
  lanes_before_ = lanes_;
  lanes_ = std::min(2 * lanes_, most_);
  before_ = std::move(before);
  measuring_.reset();
  busy_.reset();
  short_runs_ = 0;
}

void LaneGovernor::Settle(absl::Duration now, int lanes, std::optional<double> speed) {
  lanes_ = lanes;
  settled_ = now;
  speed_ = speed;
  Restart();
}

void LaneGovernor::Restart() {
  lanes_before_ = 0;
  before_.clear();
  measuring_.reset();
  busy_.reset();
  short_runs_ = 0;
}

}  // namespace ablate::worker
