#include "server/schedule/workers.h"

#include <algorithm>
#include <map>

namespace ablate::schedule {

namespace {

constexpr size_t kMaxLosses = 80;  // a curve in a terminal has at most 40 columns

}  // namespace

void TrainingMeter::Add(absl::Duration now, const storage::PointsEvent& event) {
  rate_.Add(now, event.step);
  for (const storage::Column& column : event.columns) {
    if (column.key != "train/loss" || column.values.empty()) continue;
    AddLoss(static_cast<float>(column.values.back()));
  }
}

void TrainingMeter::AddLoss(float loss) {
  const size_t place = count_++;
  if (place > 0 && (place - 1) % stride_ != 0) losses_.pop_back();  // it was only the newest
  losses_.push_back(loss);
  if (losses_.size() <= kMaxLosses) return;
  const size_t spaced = place / stride_ + 1;  // without the newest, if that isn't one of them
  size_t kept = 0;
  for (size_t i = 0; i < spaced; i += 2) losses_[kept++] = losses_[i];
  losses_.resize(kept);
  stride_ *= 2;
  if (place % stride_ != 0) losses_.push_back(loss);
}

HeldLease* WorkerState::Find(absl::string_view lease) {
  const auto held = leases.find(lease);
  return held == leases.end() ? nullptr : &held->second;
}

uint32_t WorkerState::load() const {
  uint32_t load = 0;
  for (const auto& [id, lease] : leases) {
    if (!lease.ending.has_value() && !lease.ended) load += LanesOf(lease.lanes);
  }
  return load;
}

std::set<std::string> WorkerState::stepping() const {
  std::set<std::string> stepping;
  std::map<uint64_t, const HeldLeases::value_type*> granted;  // by order
  for (const auto& [id, lease] : leases) {
    if (lease.stepping()) stepping.insert(id);
  }
  if (!stepping.empty()) return stepping;
  for (const auto& held : leases) {
    if (!held.second.started && !held.second.ended) granted[held.second.order] = &held;
  }
  uint32_t taken = 0;
  for (const auto& [order, held] : granted) {
    taken += LanesOf(held->second.lanes);
    if (taken > std::max(lanes, 1u)) break;
    stepping.insert(held->first);
  }
  return stepping;
}

}  // namespace ablate::schedule
