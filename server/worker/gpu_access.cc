#include "server/worker/gpu_access.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/program/run.h"

namespace ablate::worker {
namespace {

constexpr absl::Duration kMostTime = absl::Seconds(60);
// Files of the driver that no single device owns.
constexpr const char* kSharedFiles[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"};
// By the driver's own library, so that the environment needs no other.
constexpr char kAskCuda[] = R"(import ctypes, sys
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
wrong = f"CUDA shows {count.value} devices" if count.value != 1 else 0
sys.exit(f"CUDA's error {error}" if error else wrong)
)";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

absl::StatusOr<GpuAccess> AccessTo(const DeviceInfo& device, const std::string& dev) {
  if (!device.minor.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("NVML reports no minor number of ", device.uuid, ", the N of /dev/nvidiaN"));
  }
  GpuAccess access{device.uuid, {absl::StrCat(dev, "/nvidia", *device.minor)}};
  if (!Exists(access.devices[0])) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no ", access.devices[0], ", the file of ", device.uuid));
  }
  for (const char* name : kSharedFiles) {
    std::string file = absl::StrCat(dev, "/", name);
    if (Exists(file)) access.devices.push_back(std::move(file));
  }
  return access;
}

absl::Status CheckSeesGpu(program::Request request) {
  request.command = {"python3", "-c", kAskCuda};
  request.limits.time = kMostTime;
  ASSIGN_OR_RETURN(const program::Output output, program::RunToEnd(std::move(request)));
  if (output.ended->ok()) return absl::OkStatus();
  const std::string said(absl::StripAsciiWhitespace(output.log));
  return absl::FailedPreconditionError(
      absl::StrCat("a program in the sandbox can't use the GPU: ",
                   said.empty() ? output.ended->reason : said.substr(said.rfind('\n') + 1)));
}

}  // namespace ablate::worker
