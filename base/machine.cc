#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace ablate::process {
namespace {

// Returns quota / period, both given as texts; nothing for "max" and -1.
std::optional<double> Ratio(absl::string_view quota, absl::string_view period) {
  double of = 0, per = 0;
  if (!absl::SimpleAtod(quota, &of) || !absl::SimpleAtod(period, &per)) return std::nullopt;
  if (of <= 0 || per <= 0) return std::nullopt;
  return of / per;
}

// Reads the limit of one folder, of version 2 or 1.
using FolderLimit = std::optional<double> (*)(const std::string& folder, bool version2);

std::optional<double> QuotaOfFolder(const std::string& folder, bool version2) {
  if (version2) {
    const std::vector<std::string> words = absl::StrSplit(
        ReadWholeFile(absl::StrCat(folder, "/cpu.max")), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    return words.size() == 2 ? Ratio(words[0], words[1]) : std::nullopt;
  }
  return Ratio(ReadWholeFile(absl::StrCat(folder, "/cpu.cfs_quota_us")),
               ReadWholeFile(absl::StrCat(folder, "/cpu.cfs_period_us")));
}

std::optional<double> MemoryOfFolder(const std::string& folder, bool version2) {
  const char* file = version2 ? "/memory.max" : "/memory.limit_in_bytes";
  double bytes = 0;
  if (!absl::SimpleAtod(ReadWholeFile(absl::StrCat(folder, file)), &bytes) || bytes <= 0) {
    return std::nullopt;
  }
  return bytes;
}

std::optional<double> Smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// Returns the smallest limit of the folder `path` under `hierarchy` and of its ancestors.
std::optional<double> SmallestOnTheWay(FolderLimit limit, const std::string& hierarchy,
                                       std::string path, bool version2) {
  std::optional<double> smallest = limit(hierarchy, version2);
  while (path.size() > 1) {
    smallest = Smaller(smallest, limit(absl::StrCat(hierarchy, path), version2));
    path.resize(path.rfind('/'));
  }
  return smallest;
}

bool HasController(absl::string_view controllers, absl::string_view name) {
  const std::vector<absl::string_view> names = absl::StrSplit(controllers, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the smallest limit of `controller` on a process with this membership.
std::optional<double> CgroupLimit(FolderLimit limit, const std::string& controller,
                                  const std::string& root, const std::string& membership) {
  std::optional<double> smallest;
  for (const absl::string_view line : absl::StrSplit(membership, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    if (parts[1].empty()) {
      smallest = Smaller(smallest, SmallestOnTheWay(limit, root, parts[2], true));
    } else if (HasController(parts[1], controller)) {
      smallest = Smaller(
          smallest, SmallestOnTheWay(limit, absl::StrCat(root, "/", controller), parts[2], false));
    }
  }
  return smallest;
}

int AffinityCores() {
  // Machines with more than a thousand cores exist; the kernel refuses a mask that is too small.
  constexpr int kMaxCores = 16384;
  cpu_set_t* const mask = CPU_ALLOC(kMaxCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCores);
  const bool known = sched_getaffinity(0, bytes, mask) == 0;
  const int cores = known ? CPU_COUNT_S(bytes, mask) : 1;
  CPU_FREE(mask);
  return cores;
}

}  // namespace

std::optional<double> CgroupQuota(const std::string& root, const std::string& membership) {
  return CgroupLimit(QuotaOfFolder, "cpu", root, membership);
}

std::optional<double> CgroupMemory(const std::string& root, const std::string& membership) {
  return CgroupLimit(MemoryOfFolder, "memory", root, membership);
}

uint64_t UsableMemory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  std::optional<double> bytes;
  if (pages > 0 && size > 0) bytes = static_cast<double>(pages) * static_cast<double>(size);
  // A cgroup of version 1 without a limit reports a size that no machine has.
  bytes = Smaller(bytes, CgroupMemory("/sys/fs/cgroup", ReadWholeFile("/proc/self/cgroup")));
  return bytes ? static_cast<uint64_t>(std::min(*bytes, 1e18)) : 0;
}

int UsableCores() {
  const std::optional<double> quota =
      CgroupQuota("/sys/fs/cgroup", ReadWholeFile("/proc/self/cgroup"));
  int cores = AffinityCores();
  // Rounded down: a lane without a whole core would be throttled in every period.
  if (quota && *quota < cores) cores = static_cast<int>(*quota);
  return std::max(cores, 1);
}

}  // namespace ablate::process
