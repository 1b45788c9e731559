#include "server/program/limit_watch.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/folder_walk.h"
#include "base/status_macros.h"
#include "server/program/log_tail.h"
#include "server/program/processes.h"

namespace ablate::program {
namespace {

constexpr absl::Duration kMinPeriod = absl::Milliseconds(5);
constexpr absl::Duration kMaxPeriod = absl::Milliseconds(100);
// Without a sandbox, a check reads the environments of all processes of the machine.
constexpr int kDirectFactor = 10;
constexpr absl::Duration kDiskPeriod = absl::Milliseconds(500);
constexpr int kDiskShare = 20;
constexpr size_t kMaxFiles = 1'000'000;
constexpr size_t kMaxProcesses = 10'000;

}  // namespace

absl::StatusOr<uint64_t> MeasureFolder(const std::string& folder, size_t max_files) {
  uint64_t bytes = 0;
  size_t files = 0;
  RETURN_IF_ERROR(WalkFolder(AT_FDCWD, folder, [&](const FolderEntry& entry) {
    bytes += static_cast<uint64_t>(entry.info.st_blocks) * 512;
    if (++files <= max_files) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("more than ", max_files, " files"));
  }));
  return bytes;
}

LimitWatch::LimitWatch(const Request& request, absl::Duration started)
    : request_(request),
      time_end_(started + request.limits.time),
      period_(kMinPeriod),
      next_(started),
      next_disk_(started) {}

std::optional<Breach> LimitWatch::Check(const Process& process, absl::Duration now) {
  if (now < next_) return std::nullopt;
  if (now >= time_end_) {
    const std::string limit = absl::FormatDuration(request_.limits.time);
    return Breach{"time", absl::StrCat("time: limit ", limit, " reached")};
  }
  const uint32_t limit = request_.limits.processes;
  const std::vector<pid_t> pids = process.Processes(limit > 0 ? limit : kMaxProcesses);
  // A fork bomb doubles its processes within milliseconds.
  const bool more = pids.size() > std::exchange(last_processes_, pids.size());
  period_ = more ? kMinPeriod : std::min(2 * period_, kMaxPeriod);
  next_ = std::min(now + (request_.sandboxed ? 1 : kDirectFactor) * period_, time_end_);
  if (limit > 0 && pids.size() > limit) {
    return Breach{"processes", absl::StrCat("processes: more than the limit of ", limit)};
  }
  if (auto breach = CheckMemory(pids)) return breach;
  if (now < next_disk_) return std::nullopt;
  auto breach = CheckDisk();
  const absl::Duration after = MonotonicNow();
  next_disk_ = after + std::max(kDiskPeriod, kDiskShare * (after - now));
  return breach;
}

std::optional<Breach> LimitWatch::CheckMemory(const std::vector<pid_t>& pids) const {
  const uint64_t limit = request_.limits.memory_bytes;
  if (limit == 0) return std::nullopt;
  const uint64_t files = request_.sandboxed && !pids.empty() ? MemoryFolderBytes(pids.front()) : 0;
  if (ResidentBytes(pids) + files <= limit) return std::nullopt;
  const Memory memory = ProportionalMemory(pids);
  // Mapped files of /dev/shm are in both numbers.
  const uint64_t used = memory.bytes + (files > memory.shared ? files - memory.shared : 0);
  if (used <= limit) return std::nullopt;
  return Breach{"memory",
                absl::StrCat("memory: ", FormatBytes(used), " used; limit ", FormatBytes(limit))};
}

std::optional<Breach> LimitWatch::CheckDisk() {
  const uint64_t limit = request_.limits.disk_bytes;
  if (limit == 0) return std::nullopt;
  const absl::StatusOr<uint64_t> used = MeasureFolder(request_.folder, kMaxFiles);
  if (!used.ok()) return Breach{"disk", absl::StrCat("disk: ", used.status().message())};
  // A file that has reached the limit can't grow, so the limit itself counts.
  if (*used < limit) return std::nullopt;
  return Breach{"disk",
                absl::StrCat("disk: ", FormatBytes(*used), " used; limit ", FormatBytes(limit))};
}

}  // namespace ablate::program
