#include "server/worker/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace ablate::worker {
namespace {

constexpr char kNvmlFile[] = "libnvidia-ml.so.1";
constexpr uint32_t kNvmlTextBytes = 96;  // NVML's own limit, of names and UUIDs
constexpr uint32_t kMaxListedProcesses = 256;
constexpr int kNvmlInsufficientSize = 7;
constexpr int kUncorrectedErrors = 1, kVolatileCounter = 0;  // since the driver was loaded

// Sets `function` to the library's function of this name. Returns false if there is none.
template <typename Result, typename... Arguments>
bool Find(void* library, const char* name, std::function<Result(Arguments...)>* function) {
  void* const symbol = dlsym(library, name);
  if (symbol != nullptr) *function = reinterpret_cast<Result (*)(Arguments...)>(symbol);
  return symbol != nullptr;
}

// Returns the device that an entry of CUDA_VISIBLE_DEVICES names; the end if there is none.
std::vector<DeviceInfo>::const_iterator Named(const std::vector<DeviceInfo>& devices,
                                              absl::string_view entry) {
  uint32_t index = 0;
  if (absl::SimpleAtoi(entry, &index)) {
    return std::find_if(devices.begin(), devices.end(),
                        [index](const DeviceInfo& device) { return device.index == index; });
  }
  const auto begins = [entry](const DeviceInfo& device) {
    return absl::StartsWith(device.uuid, entry);
  };
  // A beginning of several UUIDs names none.
  const bool one =
      absl::StartsWith(entry, "GPU-") && std::count_if(devices.begin(), devices.end(), begins) == 1;
  return one ? std::find_if(devices.begin(), devices.end(), begins) : devices.end();
}

}  // namespace

absl::StatusOr<Nvml> Nvml::Load() {
  void* const library = dlopen(kNvmlFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no NVIDIA driver is installed (", dlerror(), ")"));
  }
  NvmlFunctions functions;
  const bool complete =
      Find(library, "nvmlInit_v2", &functions.init) &&
      Find(library, "nvmlDeviceGetCount_v2", &functions.count) &&
      Find(library, "nvmlDeviceGetHandleByIndex_v2", &functions.by_index) &&
      Find(library, "nvmlDeviceGetHandleByUUID", &functions.by_uuid) &&
      Find(library, "nvmlDeviceGetUUID", &functions.uuid) &&
      Find(library, "nvmlDeviceGetName", &functions.name) &&
      Find(library, "nvmlDeviceGetMemoryInfo", &functions.memory) &&
      Find(library, "nvmlDeviceGetUtilizationRates", &functions.utilization) &&
      Find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &functions.processes) &&
      Find(library, "nvmlErrorString", &functions.error_text);
  if (!complete) {
    return absl::FailedPreconditionError(absl::StrCat(
        kNvmlFile, " lacks a function: its NVIDIA driver is too old; install a newer one"));
  }
  Find(library, "nvmlSystemGetDriverVersion", &functions.driver_version);
  Find(library, "nvmlSystemGetCudaDriverVersion_v2", &functions.cuda_version);
  Find(library, "nvmlDeviceGetMinorNumber", &functions.minor_number);
  Find(library, "nvmlDeviceGetPowerUsage", &functions.power);
  Find(library, "nvmlDeviceGetTotalEccErrors", &functions.ecc_errors);
  return Make(std::move(functions));
}

absl::StatusOr<Nvml> Nvml::Make(NvmlFunctions functions) {
  Nvml nvml(std::move(functions));
  RETURN_IF_ERROR(nvml.Check(nvml.functions_.init(), "start"));
  return nvml;
}

absl::Status Nvml::Check(int result, absl::string_view what) const {
  if (result == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the NVIDIA driver can't ", what, ": ", functions_.error_text(result)));
}

absl::Status Nvml::CheckDriver(int driver, int cuda) const {
  constexpr int kMajor = 1000;
  std::array<char, kNvmlTextBytes> text{};
  int major = 0, version = 0;
  const bool known =
      functions_.driver_version && functions_.driver_version(text.data(), text.size()) == 0 &&
      absl::SimpleAtoi(absl::string_view(text.data()).substr(0, strcspn(text.data(), ".")), &major);
  if (!known || major >= driver) return absl::OkStatus();
  if (functions_.cuda_version && functions_.cuda_version(&version) == 0 &&
      version >= kMajor * cuda) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the NVIDIA driver is ", text.data(), ", CUDA ",
                                                    cuda, " needs ", driver,
                                                    " or newer: update it"));
}

absl::StatusOr<std::vector<DeviceInfo>> Nvml::List() const {
  uint32_t count = 0;
  RETURN_IF_ERROR(Check(functions_.count(&count), "count its devices"));
  std::vector<DeviceInfo> devices;
  for (uint32_t index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    // A device without permission, or one that was lost, hides no other.
    if (functions_.by_index(index, &device) != 0) continue;
    std::array<char, kNvmlTextBytes> uuid{}, name{};
    NvmlMemory memory;
    if (functions_.uuid(device, uuid.data(), uuid.size()) != 0 ||
        functions_.name(device, name.data(), name.size()) != 0 ||
        functions_.memory(device, &memory) != 0) {
      continue;
    }
    DeviceInfo& info = devices.emplace_back();
    info = {index, uuid.data(), name.data(), memory.total};
    uint32_t minor = 0;
    if (functions_.minor_number && functions_.minor_number(device, &minor) == 0) info.minor = minor;
  }
  return devices;
}

absl::StatusOr<DeviceUse> Nvml::UseOf(const std::string& uuid) const {
  NvmlDevice device = nullptr;
  NvmlMemory memory;
  NvmlUtilization utilization;
  absl::Status status = Check(functions_.by_uuid(uuid.c_str(), &device), "find the device");
  if (status.ok()) status = Check(functions_.memory(device, &memory), "read its memory");
  if (status.ok()) status = Check(functions_.utilization(device, &utilization), "read its use");
  if (!status.ok()) return status;
  std::array<NvmlProcess, kMaxListedProcesses> processes;
  uint32_t count = processes.size();
  const int listed = functions_.processes(device, &count, processes.data());
  DeviceUse use = {utilization.gpu, memory.used};
  // One of them is this process, whose number differs in a container.
  const bool counted = listed == 0 || listed == kNvmlInsufficientSize;
  if (counted && count > 0) use.others = count - 1;
  uint32_t milliwatts = 0;
  if (functions_.power && functions_.power(device, &milliwatts) == 0) {
    use.watts = (milliwatts + 500) / 1000;
  }
  uint64_t errors = 0;
  if (functions_.ecc_errors &&
      functions_.ecc_errors(device, kUncorrectedErrors, kVolatileCounter, &errors) == 0) {
    use.ecc_errors = errors;
  }
  return use;
}

std::vector<DeviceInfo> VisibleDevices(const std::vector<DeviceInfo>& devices,
                                       const std::optional<std::string>& visible) {
  if (!visible.has_value()) return devices;
  std::vector<bool> shown(devices.size());
  for (absl::string_view entry : absl::StrSplit(*visible, ',')) {
    const auto named = Named(devices, absl::StripAsciiWhitespace(entry));
    if (named == devices.end()) break;
    shown[static_cast<size_t>(named - devices.begin())] = true;
  }
  std::vector<DeviceInfo> result;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (shown[i]) result.push_back(devices[i]);
  }
  return result;
}

std::string ToJson(const DeviceInfo& device) {
  nlohmann::ordered_json json;
  json["index"] = device.index;
  json["uuid"] = device.uuid;
  json["name"] = device.name;
  json["memory_bytes"] = device.memory_bytes;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ablate::worker
