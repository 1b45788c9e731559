#include "server/schedule/workers.h"

#include <algorithm>
#include <utility>

namespace ablate::schedule {

bool HeldLease::started() const {
  return std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run.second.started; });
}

HeldRun* WorkerState::FindRun(absl::string_view lease, const std::string& run) {
  const auto held = leases.find(lease);
  if (held == leases.end()) return nullptr;
  const auto found = held->second.runs.find(run);
  return found == held->second.runs.end() ? nullptr : &found->second;
}

uint32_t WorkerState::load() const {
  uint32_t load = 0;
  for (const auto& [id, lease] : leases) {
    if (lease.ending.has_value()) continue;
    for (const auto& [name, run] : lease.runs) load += run.ended ? 0 : 1;
  }
  return load;
}

std::vector<std::string> WorkerState::stepping() const {
  std::vector<std::string> stepping;
  std::vector<std::pair<uint64_t, std::string>> granted;
  for (const auto& [id, lease] : leases) {
    for (const auto& [name, run] : lease.runs) {
      if (run.stepping()) stepping.push_back(name);
      if (!run.started && !run.ended) granted.emplace_back(lease.order, name);
    }
  }
  if (!stepping.empty()) return stepping;
  std::sort(granted.begin(), granted.end());
  granted.resize(std::min<size_t>(granted.size(), std::max<uint32_t>(lanes, 1)));
  for (auto& [order, name] : granted) stepping.push_back(std::move(name));
  return stepping;
}

}  // namespace ablate::schedule
