// Describes the device of a worker for its Hello.
#ifndef ABLATE_SERVER_WORKER_DEVICE_H_
#define ABLATE_SERVER_WORKER_DEVICE_H_

#include <functional>
#include <optional>
#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "server/engine/accelerator.h"
#include "server/worker/nvml.h"

namespace ablate::worker {

// Both set device, device_kind, lanes and memory_bytes. `measured`: the worker finds the number of
// lanes, and `lanes` is the most.
void DescribeCores(int lanes, v1::Hello* hello);
void DescribeAccelerator(const engine::AcceleratorInfo& info, int lanes, bool measured,
                         v1::Hello* hello);

// Returns a function that asks NVML for the use of this device; it returns nothing if the driver
// doesn't answer. Null if there is no NVML.
std::function<std::optional<v1::DeviceUse>()> AskForUse(const absl::StatusOr<Nvml>& nvml,
                                                        const std::string& uuid);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_DEVICE_H_
