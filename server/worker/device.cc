#include "server/worker/device.h"

#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/machine.h"

namespace ablate::worker {
namespace {

std::string NameOfCpu() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    const size_t colon = line.find(':');
    if (!absl::StartsWith(line, "model name") || colon == std::string::npos) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "CPU";
}

void DescribeDevice(const std::string& name, int lanes, v1::Hello* hello) {
  hello->set_device(absl::StrCat(name, lanes, lanes == 1 ? " lane" : " lanes"));
  hello->set_lanes(static_cast<uint32_t>(lanes));
}

}  // namespace

void DescribeCores(int lanes, v1::Hello* hello) {
  DescribeDevice(NameOfCpu() + ", ", lanes, hello);
  hello->set_device_kind("cpu");
  hello->set_memory_bytes(process::UsableMemory());
}

void DescribeAccelerator(const engine::AcceleratorInfo& info, int lanes, bool measured,
                         v1::Hello* hello) {
  constexpr uint64_t kGib = uint64_t{1} << 30;
  const uint64_t gib = (info.memory_bytes + kGib / 2) / kGib;
  const absl::string_view most = measured ? ", up to " : ", ";
  DescribeDevice(absl::StrCat(info.name, ", ", gib, " GiB", most), lanes, hello);
  hello->set_device_kind("cuda");
  hello->set_memory_bytes(info.memory_bytes);
}

std::function<std::optional<v1::DeviceUse>()> AskForUse(const absl::StatusOr<Nvml>& nvml,
                                                        const std::string& uuid) {
  if (!nvml.ok()) return nullptr;
  return [nvml = *nvml, uuid]() -> std::optional<v1::DeviceUse> {
    const absl::StatusOr<DeviceUse> use = nvml.UseOf(uuid);
    if (!use.ok()) return std::nullopt;
    v1::DeviceUse message;
    message.set_utilization(use->utilization);
    message.set_used_bytes(use->used_bytes);
    message.set_others(use->others);
    message.set_watts(use->watts);
    message.set_ecc_errors(use->ecc_errors);
    return message;
  };
}

}  // namespace ablate::worker
