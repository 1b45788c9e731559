// Asks NVIDIA's management library (NVML) for the GPUs of this machine. NVML keeps no device busy
// and needs none of CUDA's libraries.
#ifndef ABLATE_SERVER_WORKER_NVML_H_
#define ABLATE_SERVER_WORKER_NVML_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::worker {

// Structs of nvml.h.
struct NvmlMemory {
  uint64_t total = 0;
  uint64_t free = 0;
  uint64_t used = 0;
};
struct NvmlUtilization {
  uint32_t gpu = 0;  // percent of the last second or less
  uint32_t memory = 0;
};
struct NvmlProcess {
  uint32_t pid = 0;
  uint64_t used = 0;  // ~0: unknown
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
};

using NvmlDevice = void*;

// The functions of libnvidia-ml.so.1, or a test's. All except the last return 0 for success. Those
// between `processes` and it may be null, or fail where a device has no such sensor or memory.
struct NvmlFunctions {
  std::function<int()> init;
  std::function<int(uint32_t* count)> count;
  std::function<int(uint32_t index, NvmlDevice* device)> by_index;
  std::function<int(const char* uuid, NvmlDevice* device)> by_uuid;
  std::function<int(NvmlDevice device, char* text, uint32_t size)> uuid;
  std::function<int(NvmlDevice device, char* text, uint32_t size)> name;
  std::function<int(NvmlDevice device, NvmlMemory* memory)> memory;
  std::function<int(NvmlDevice device, NvmlUtilization* utilization)> utilization;
  // `count` is the array's size, then the number of processes.
  std::function<int(NvmlDevice device, uint32_t* count, NvmlProcess* processes)> processes;
  std::function<int(char* text, uint32_t size)> driver_version;  // "580.159.04"
  std::function<int(int* version)> cuda_version;                 // 1000 · major + 10 · minor
  std::function<int(NvmlDevice device, uint32_t* number)> minor_number;
  std::function<int(NvmlDevice device, uint32_t* milliwatts)> power;
  std::function<int(NvmlDevice device, int type, int counter, uint64_t* count)> ecc_errors;
  std::function<const char*(int error)> error_text;
};

struct DeviceInfo {
  uint32_t index = 0;  // as nvidia-smi numbers it
  std::string uuid;    // "GPU-8c0fb2cf-…"
  std::string name;    // "NVIDIA H100 80GB HBM3"
  uint64_t memory_bytes = 0;
  std::optional<uint32_t> minor = {};  // of its file /dev/nvidiaN, if known
};

// The use of a device by all processes of the machine, one of which is this one.
struct DeviceUse {
  uint32_t utilization = 0;  // percent
  uint64_t used_bytes = 0;
  uint32_t others = 0;      // other processes that compute on it, as far as visible
  uint32_t watts = 0;       // 0: unknown
  uint64_t ecc_errors = 0;  // uncorrected errors of its memory since the driver was loaded
};

// A loaded and initialised library, as thread-safe as NVML, which is. Copies share it.
class Nvml {
 public:
  // Loads the driver's library, which stays loaded. Returns FAILED_PRECONDITION, which says why, if
  // there is none or it can't reach the driver.
  static absl::StatusOr<Nvml> Load();
  // Initialises the library whose functions these are; the same error.
  static absl::StatusOr<Nvml> Make(NvmlFunctions functions);

  // Returns FAILED_PRECONDITION "the NVIDIA driver is 535.54, CUDA 13 needs 580 or newer: update
  // it" if the driver's major version is less than `driver`, and its CUDA's less than `cuda`: a
  // package for forward compatibility can give an older driver a newer CUDA. OK if a version is
  // unknown.
  absl::Status CheckDriver(int driver, int cuda) const;
  // Returns the machine's devices in NVML's order.
  absl::StatusOr<std::vector<DeviceInfo>> List() const;
  absl::StatusOr<DeviceUse> UseOf(const std::string& uuid) const;

 private:
  explicit Nvml(NvmlFunctions functions) : functions_(std::move(functions)) {}
  // Returns FAILED_PRECONDITION "the NVIDIA driver can't WHAT: <NVML's text>" unless `result` is 0.
  absl::Status Check(int result, absl::string_view what) const;

  NvmlFunctions functions_;
};

// Returns the devices that `visible`, the value of CUDA_VISIBLE_DEVICES, shows; all if it is not
// set. Its entries are indices, UUIDs or their beginnings; the first that names no device ends the
// list, as in CUDA. The order of `devices` stays.
std::vector<DeviceInfo> VisibleDevices(const std::vector<DeviceInfo>& devices,
                                       const std::optional<std::string>& visible);

// Returns {"index": …, "uuid": …, "name": …, "memory_bytes": …}, in one line without its end.
std::string ToJson(const DeviceInfo& device);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_NVML_H_
