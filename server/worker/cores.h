// How many cores this process may use.
#ifndef ABLATE_SERVER_WORKER_CORES_H_
#define ABLATE_SERVER_WORKER_CORES_H_

#include <optional>
#include <string>

namespace ablate::worker {

// The smaller of the scheduler's affinity and the cgroup's quota, at least 1.
int UsableCores();

// The smallest CPU quota, in cores, of the cgroup that `membership` (the text of /proc/self/cgroup)
// names and of those above it, under `root` (/sys/fs/cgroup); nothing if none limits. Reads version
// 2, and version 1's cpu controller.
std::optional<double> CgroupQuota(const std::string& root, const std::string& membership);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_CORES_H_
