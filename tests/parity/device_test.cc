// Compares the device backend, on the CPU, with the reference backend over the grid of settings.
#include <gtest/gtest.h>

#include <string>

#include "server/engine/trainer.h"
#include "tests/engine/host_stream.h"
#include "tests/parity/device_check.h"

namespace ablate::engine {
namespace {

TEST(DeviceParityTest, ComputesWhatTheReferenceDoes) {
  constexpr uint64_t kCases = 60;
  PrepareLaneThread();
  for (uint64_t number = 0; number < kCases; ++number) {
    HostStreams streams;
    const std::string difference = DeviceDifference(DrawCase(number), Device::kCpu, streams);
    EXPECT_EQ(difference, "") << "case " << number;
  }
}

}  // namespace
}  // namespace ablate::engine
