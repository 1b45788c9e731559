// Tests what is asked of NVIDIA's management library, with functions of a fake one.
#include "server/worker/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ablate::worker {
namespace {

constexpr int kNotFound = 6;
constexpr int kNoPermission = 4;

struct FakeDevice {
  std::string uuid;
  std::string name;
  NvmlMemory memory;
  std::vector<uint32_t> pids = {};
  int error = 0;  // of every question about it
};

// A machine's devices and the functions of their library. A handle is the address of a device.
class FakeNvml {
 public:
  std::vector<FakeDevice> devices;
  int init_error = 0;

  NvmlFunctions functions() {
    NvmlFunctions f;
    f.init = [this] { return init_error; };
    f.count = [this](uint32_t* count) {
      *count = static_cast<uint32_t>(devices.size());
      return 0;
    };
    f.by_index = [this](uint32_t index, NvmlDevice* device) {
      *device = &devices.at(index);
      return devices[index].error;
    };
    f.by_uuid = [this](const char* uuid, NvmlDevice* device) {
      for (FakeDevice& each : devices) {
        if (each.uuid != uuid) continue;
        *device = &each;
        return each.error;
      }
      return kNotFound;
    };
    f.uuid = [](NvmlDevice device, char* text, uint32_t size) {
      std::strncpy(text, Of(device).uuid.c_str(), size - 1);
      return 0;
    };
    f.name = [](NvmlDevice device, char* text, uint32_t size) {
      std::strncpy(text, Of(device).name.c_str(), size - 1);
      return 0;
    };
    f.memory = [](NvmlDevice device, NvmlMemory* memory) {
      *memory = Of(device).memory;
      return 0;
    };
    f.utilization = [](NvmlDevice, NvmlUtilization* utilization) {
      *utilization = {62, 30};
      return 0;
    };
    f.processes = [](NvmlDevice device, uint32_t* count, NvmlProcess* processes) {
      const std::vector<uint32_t>& pids = Of(device).pids;
      const bool fits = pids.size() <= *count;
      *count = static_cast<uint32_t>(pids.size());
      for (size_t i = 0; fits && i < pids.size(); ++i) processes[i] = {pids[i], ~uint64_t{0}};
      return fits ? 0 : 7;
    };
    f.error_text = [](int error) { return error == kNoPermission ? "No permission" : "Not found"; };
    return f;
  }

 private:
  static const FakeDevice& Of(NvmlDevice device) { return *static_cast<FakeDevice*>(device); }
};

// Two devices whose UUIDs begin alike.
FakeNvml TwoDevices() {
  FakeNvml fake;
  fake.devices = {{"GPU-11aa", "NVIDIA H100", {80, 70, 10}},
                  {"GPU-11bb", "NVIDIA L4", {24, 24, 0}}};
  return fake;
}

TEST(NvmlTest, ListsEveryDevice) {
  FakeNvml fake = TwoDevices();
  const auto devices = Nvml::Make(fake.functions())->List();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ(ToJson(devices->at(0)),
            R"({"index":0,"uuid":"GPU-11aa","name":"NVIDIA H100","memory_bytes":80})");
  EXPECT_EQ(devices->at(1).index, 1u);
  EXPECT_FALSE(devices->at(1).minor.has_value()) << "an old driver doesn't know it";
  NvmlFunctions functions = fake.functions();
  functions.minor_number = [&fake](NvmlDevice device, uint32_t* number) {
    *number = device == &fake.devices[0] ? 5 : 0;
    return device == &fake.devices[0] ? 0 : kNotFound;
  };
  const auto numbered = Nvml::Make(functions)->List();
  EXPECT_EQ(numbered->at(0).minor, 5u);
  EXPECT_FALSE(numbered->at(1).minor.has_value());
}

TEST(NvmlTest, LeavesOutADeviceThatDoesNotAnswer) {
  FakeNvml fake = TwoDevices();
  fake.devices[0].error = kNoPermission;
  const auto devices = Nvml::Make(fake.functions())->List();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->at(0).uuid, "GPU-11bb");
  EXPECT_EQ(devices->at(0).index, 1u) << "its number stays";
}

TEST(NvmlTest, SaysWhyTheDriverDoesNotStart) {
  FakeNvml fake;
  fake.init_error = kNoPermission;
  const absl::Status status = Nvml::Make(fake.functions()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "the NVIDIA driver can't start: No permission");
}

struct DriverCase {
  const char* driver;
  int cuda;
  bool accepted;
};

TEST(NvmlTest, RefusesADriverThatIsTooOld) {
  FakeNvml fake;
  EXPECT_TRUE(Nvml::Make(fake.functions())->CheckDriver(580, 13).ok()) << "an unknown version";
  for (const DriverCase& wanted : {DriverCase{"580.159.04", 13000, true},
                                   {"600.1", 13020, true},
                                   {"580", 0, true},
                                   {"odd", 0, true},
                                   {"535.54", 12020, false},
                                   {"579.99.1", 0, false},
                                   {"535.54", 13000, true}}) {
    NvmlFunctions functions = fake.functions();
    functions.driver_version = [&](char* text, uint32_t size) {
      std::strncpy(text, wanted.driver, size - 1);
      return 0;
    };
    functions.cuda_version = [&](int* version) {
      *version = wanted.cuda;
      return wanted.cuda == 0 ? kNotFound : 0;
    };
    const absl::Status status = Nvml::Make(functions)->CheckDriver(580, 13);
    EXPECT_EQ(status.ok(), wanted.accepted) << wanted.driver << ": " << status;
    if (wanted.accepted) continue;
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_EQ(status.message(), absl::StrCat("the NVIDIA driver is ", wanted.driver,
                                             ", CUDA 13 needs 580 or newer: update it"));
  }
}

TEST(NvmlTest, CountsTheProcessesOfOthers) {
  FakeNvml fake = TwoDevices();
  fake.devices[0].pids = {1, 2, 3};
  const absl::StatusOr<Nvml> nvml = Nvml::Make(fake.functions());
  const auto use = nvml->UseOf("GPU-11aa");
  ASSERT_TRUE(use.ok()) << use.status();
  EXPECT_EQ(use->utilization, 62u);
  EXPECT_EQ(use->used_bytes, 10u);
  EXPECT_EQ(use->others, 2u);
  EXPECT_EQ(nvml->UseOf("GPU-11bb")->others, 0u);
  EXPECT_EQ(nvml->UseOf("GPU-22").status().message(),
            "the NVIDIA driver can't find the device: Not found");
}

TEST(NvmlTest, ReadsPowerAndMemoryErrorsOfDevicesThatHaveThem) {
  FakeNvml fake = TwoDevices();
  const auto without = Nvml::Make(fake.functions())->UseOf("GPU-11aa");
  ASSERT_TRUE(without.ok()) << "a library without the functions";
  EXPECT_EQ(without->watts + without->ecc_errors, 0u);
  NvmlFunctions functions = fake.functions();
  int result = 0;
  functions.power = [&result](NvmlDevice, uint32_t* milliwatts) {
    *milliwatts = 71'400;
    return result;
  };
  functions.ecc_errors = [&result](NvmlDevice, int type, int counter, uint64_t* count) {
    EXPECT_EQ(type, 1) << "uncorrected";
    EXPECT_EQ(counter, 0) << "since the driver was loaded";
    *count = 3;
    return result;
  };
  const absl::StatusOr<Nvml> nvml = Nvml::Make(functions);
  EXPECT_EQ(nvml->UseOf("GPU-11aa")->watts, 71u);
  EXPECT_EQ(nvml->UseOf("GPU-11aa")->ecc_errors, 3u);
  result = 3;  // not supported
  const auto refused = nvml->UseOf("GPU-11aa");
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->watts + refused->ecc_errors, 0u);
}

TEST(NvmlTest, CountsMoreProcessesThanItLists) {
  FakeNvml fake = TwoDevices();
  fake.devices[0].pids.assign(1000, 1);
  EXPECT_EQ(Nvml::Make(fake.functions())->UseOf("GPU-11aa")->others, 999u);
}

struct VisibleCase {
  std::optional<std::string> visible;
  std::vector<uint32_t> shown;
};

TEST(VisibleDevicesTest, FollowsTheEnvironmentAsCudaDoes) {
  const std::vector<DeviceInfo> devices = {
      {0, "GPU-11aa", "", 0}, {1, "GPU-11bb", "", 0}, {2, "GPU-2", "", 0}};
  for (const VisibleCase& wanted : {VisibleCase{std::nullopt, {0, 1, 2}},
                                    {"", {}},
                                    {"-1", {}},
                                    {"1", {1}},
                                    {"2,0", {0, 2}},
                                    {" 1 , GPU-2", {1, 2}},
                                    {"GPU-11bb,GPU-11bb", {1}},
                                    {"GPU-11", {}},  // two begin so
                                    {"GPU-11a", {0}},
                                    {"0,7,1", {0}},  // ends with the first that there isn't
                                    {"0,-1,1", {0}},
                                    {"MIG-11aa", {}},
                                    {"G", {}}}) {
    std::vector<uint32_t> shown;
    for (const DeviceInfo& device : VisibleDevices(devices, wanted.visible)) {
      shown.push_back(device.index);
    }
    EXPECT_EQ(shown, wanted.shown) << wanted.visible.value_or("not set");
  }
}

}  // namespace
}  // namespace ablate::worker
