#include "server/schedule/workers.h"

#include <algorithm>
#include <utility>

namespace ablate::schedule {

HeldLease* WorkerState::Find(absl::string_view lease) {
  const auto held = leases.find(lease);
  return held == leases.end() ? nullptr : &held->second;
}

uint32_t WorkerState::load() const {
  return static_cast<uint32_t>(std::count_if(leases.begin(), leases.end(), [](const auto& lease) {
    return !lease.second.ending.has_value() && !lease.second.ended;
  }));
}

std::set<std::string> WorkerState::stepping() const {
  std::set<std::string> stepping;
  std::vector<std::pair<uint64_t, std::string>> granted;
  for (const auto& [id, lease] : leases) {
    if (lease.stepping()) stepping.insert(id);
    if (!lease.started && !lease.ended) granted.emplace_back(lease.order, id);
  }
  if (!stepping.empty()) return stepping;
  std::sort(granted.begin(), granted.end());
  granted.resize(std::min<size_t>(granted.size(), std::max<uint32_t>(lanes, 1)));
  for (auto& [order, id] : granted) stepping.insert(std::move(id));
  return stepping;
}

}  // namespace ablate::schedule
