// Reports how many cores and how much memory this process may use.
#ifndef ABLATE_BASE_MACHINE_H_
#define ABLATE_BASE_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ablate::process {

// Returns the smaller of the scheduler's affinity and the cgroup's quota, at least 1.
int UsableCores();

// Returns the smallest CPU quota, in cores, of the cgroup that `membership` (the text of
// /proc/self/cgroup) names and of its ancestors, below `root` (/sys/fs/cgroup); nothing if none
// limits. Reads version 2, and version 1's cpu controller.
std::optional<double> CgroupQuota(const std::string& root, const std::string& membership);

// Returns the smaller of the machine's memory and the cgroup's limit, in bytes; 0 if neither is
// known.
uint64_t UsableMemory();

// Returns the smallest memory limit in bytes, found as by CgroupQuota, of version 2 or of version
// 1's memory controller.
std::optional<double> CgroupMemory(const std::string& root, const std::string& membership);

}  // namespace ablate::process

#endif  // ABLATE_BASE_MACHINE_H_
