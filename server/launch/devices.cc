#include "server/launch/devices.h"

#include <dlfcn.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/spawn.h"
#include "server/launch/worker_process.h"

namespace ablate::launch {
namespace {

using process::FileDescriptor;

constexpr absl::string_view kCudaPrefix = "cuda:";
constexpr uint32_t kMaxDeviceIndex = 1023;
constexpr size_t kMaxUuidBytes = 96;
constexpr absl::Duration kListTimeout = absl::Seconds(30);

// A UUID becomes part of a file's name and a value of the environment.
bool IsUuid(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxUuidBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-'; });
}

// Reads a line of the list. Returns false for any other.
bool ReadDevice(absl::string_view line, ListedDevice* device) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("index") || !json["index"].is_number_unsigned() ||
      !json.contains("uuid") || !json["uuid"].is_string()) {
    return false;
  }
  device->index = json["index"].get<uint32_t>();
  device->uuid = json["uuid"].get<std::string>();
  return device->index <= kMaxDeviceIndex && IsUuid(device->uuid);
}

// Asks faster than a worker, which loads LibTorch first.
bool HasNvidiaDriver() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

}  // namespace

absl::StatusOr<DeviceChoice> ReadDeviceChoice(absl::string_view text) {
  if (text == "all") return DeviceChoice{};
  if (text == "none") return DeviceChoice{false};
  std::set<uint32_t> indexes;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    uint32_t index = 0;
    if (!absl::ConsumePrefix(&entry, kCudaPrefix) || !absl::SimpleAtoi(entry, &index) ||
        index > kMaxDeviceIndex) {
      return absl::InvalidArgumentError(
          absl::StrCat("must be all, none, or a list such as cuda:0,cuda:1, is ", text));
    }
    indexes.insert(index);
  }
  return DeviceChoice{false, {indexes.begin(), indexes.end()}};
}

absl::StatusOr<std::vector<ListedDevice>> ListDevices(const std::string& program,
                                                      absl::Duration timeout) {
  const FileDescriptor output(memfd_create("devices", MFD_CLOEXEC));
  if (!output.open()) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  pid_t pid = 0;
  const int error = process::SpawnDetached(program, {"--list-devices"}, WorkerEnvironment({}),
                                           output.get(), &pid);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", program));
  if (!process::AwaitChild(pid, timeout).has_value()) {
    return absl::DeadlineExceededError(absl::StrCat(program, " --list-devices did not end within ",
                                                    absl::FormatDuration(timeout)));
  }
  const std::string file = absl::StrCat("/proc/self/fd/", output.get());
  std::vector<ListedDevice> devices;
  for (absl::string_view line : absl::StrSplit(process::ReadWholeFile(file), '\n')) {
    ListedDevice device;
    if (ReadDevice(line, &device)) devices.push_back(std::move(device));
  }
  if (!devices.empty()) return devices;
  const std::string reason = LastLine(file, 0);
  return absl::NotFoundError(reason.empty() ? absl::StrCat(program, " lists none") : reason);
}

absl::StatusOr<std::vector<ListedDevice>> FindDevices(const DeviceChoice& choice,
                                                      const std::string& program) {
  if (choice.none() || (choice.all && !HasNvidiaDriver())) return std::vector<ListedDevice>();
  absl::StatusOr<std::vector<ListedDevice>> listed = ListDevices(program, kListTimeout);
  if (choice.all) {
    if (listed.ok()) return listed;
    spdlog::warn("no GPU is used: {}", std::string(listed.status().message()));
    return std::vector<ListedDevice>();
  }
  std::vector<ListedDevice> chosen;
  for (const uint32_t index : choice.indexes) {
    const auto missing = [index](const std::string& why) {
      return absl::NotFoundError(
          absl::StrCat("--devices: there is no ", kCudaPrefix, index, " (", why,
                       "); expected GPUs that ablate-worker --list-devices prints, all or none"));
    };
    if (!listed.ok()) return missing(std::string(listed.status().message()));
    const auto found = std::find_if(listed->begin(), listed->end(),
                                    [index](const auto& device) { return device.index == index; });
    if (found == listed->end()) {
      return missing(
          absl::StrCat(listed->size(), listed->size() == 1 ? " GPU is" : " GPUs are", " listed"));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace ablate::launch
