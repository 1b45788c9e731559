#include "server/program/limit_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "server/program/log_tail.h"
#include "server/program/usage.h"

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

LimitWatch::LimitWatch(const Request& request, absl::Duration started)
    : limits_(request.limits),
      folder_(request.folder),
      sandboxed_(request.sandboxed),
      time_end_(started + request.limits.time),
      period_(kMinPeriod),
      next_(started),
      next_disk_(started) {}

std::optional<Breach> LimitWatch::Check(const Process& process, absl::Duration now) {
  if (now < next_) return std::nullopt;
  if (now >= time_end_) {
    return Breach{"time",
                  absl::StrCat("time: limit ", absl::FormatDuration(limits_.time), " reached")};
  }
  const uint32_t limit = limits_.processes;
  const std::vector<pid_t> pids = process.Processes(limit > 0 ? limit : kMaxProcesses);
  // A fork bomb doubles its processes within milliseconds.
  const bool more = pids.size() > std::exchange(last_processes_, pids.size());
  period_ = more ? kMinPeriod : std::min(2 * period_, kMaxPeriod);
  next_ = std::min(now + (sandboxed_ ? 1 : kDirectFactor) * period_, time_end_);
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
  const uint64_t limit = limits_.memory_bytes;
  if (limit == 0) return std::nullopt;
  const uint64_t files = sandboxed_ && !pids.empty() ? MemoryFolderBytes(pids.front()) : 0;
  if (ResidentBytes(pids) + files <= limit) return std::nullopt;
  const Memory memory = ProportionalMemory(pids);
  // Mapped files of /dev/shm are in both numbers.
  const uint64_t used = memory.bytes + (files > memory.shared ? files - memory.shared : 0);
  if (used <= limit) return std::nullopt;
  return Breach{"memory",
                absl::StrCat("memory: ", FormatBytes(used), " used; limit ", FormatBytes(limit))};
}

std::optional<Breach> LimitWatch::CheckDisk() {
  const uint64_t limit = limits_.disk_bytes;
  if (limit == 0) return std::nullopt;
  const FolderSize size = MeasureFolder(folder_, kMaxFiles);
  if (!size.complete) {
    return Breach{"disk", absl::StrCat("disk: more than ", kMaxFiles,
                                       " files, or folders nested deeper than 64")};
  }
  // A file that has reached the limit can't grow, so the limit itself counts.
  if (size.bytes < limit) return std::nullopt;
  return Breach{
      "disk", absl::StrCat("disk: ", FormatBytes(size.bytes), " used; limit ", FormatBytes(limit))};
}

}  // namespace ablate::program
