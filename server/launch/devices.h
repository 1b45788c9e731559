// Finds the GPUs for which a server starts workers.
#ifndef ABLATE_SERVER_LAUNCH_DEVICES_H_
#define ABLATE_SERVER_LAUNCH_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::launch {

// A line of `ablate-worker --list-devices`.
struct ListedDevice {
  uint32_t index = 0;  // as nvidia-smi numbers it
  std::string uuid;    // characters of a file's name only
};

// The GPUs that a server may use.
struct DeviceChoice {
  bool all = true;
  std::vector<uint32_t> indexes = {};  // ascending, unless all
  bool none() const { return !all && indexes.empty(); }
};

// Reads "all", "none", or a list such as "cuda:0,cuda:2". INVALID_ARGUMENT names what is expected.
absl::StatusOr<DeviceChoice> ReadDeviceChoice(absl::string_view text);

// Runs `program --list-devices`, at most for `timeout`. An error says why there is no list: the
// last line that the program printed, or that it printed nothing in time and was killed.
absl::StatusOr<std::vector<ListedDevice>> ListDevices(const std::string& program,
                                                      absl::Duration timeout);

// Returns the chosen devices that `program` lists. NOT_FOUND names the first one of a list that it
// doesn't list. If all are chosen, there may be none: then the reason is logged, and the program
// isn't started unless NVIDIA's driver is installed.
absl::StatusOr<std::vector<ListedDevice>> FindDevices(const DeviceChoice& choice,
                                                      const std::string& program);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_DEVICES_H_
