// A library with the functions of NVIDIA's management library that ablate-worker uses, for a
// machine with two GPUs. FAKE_DRIVER in the environment is the driver's version.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kNotFound = 6;
constexpr std::array<const char*, 2> kUuids = {"GPU-11aa", "GPU-22bb"};

// A device is the address of its UUID.
int Copy(const char* from, char* text, unsigned size) {
  std::strncpy(text, from, size - 1);
  text[size - 1] = '\0';
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  const char* const version = std::getenv("FAKE_DRIVER");
  return Copy(version != nullptr ? version : "580.159.04", text, size);
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kUuids.size();
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = const_cast<const char**>(&kUuids[index]);
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (unsigned i = 0; i < kUuids.size(); ++i) {
    if (std::strcmp(uuid, kUuids[i]) == 0) return nvmlDeviceGetHandleByIndex_v2(i, device);
  }
  return kNotFound;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return Copy(*static_cast<const char**>(device), text, size);
}
int nvmlDeviceGetName(void*, char* text, unsigned size) { return Copy("NVIDIA Fake", text, size); }
int nvmlDeviceGetMemoryInfo(void*, uint64_t* memory) {
  memory[0] = uint64_t{24} << 30;
  memory[1] = memory[2] = memory[0] / 2;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* utilization) {
  utilization[0] = utilization[1] = 50;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = 0;
  return 0;
}
const char* nvmlErrorString(int) { return "Not Found"; }

}  // extern "C"
