// Implements the backend of an accelerator: blocks of updates without waiting for the device, each
// update a captured graph.
#ifndef ABLATE_SERVER_ENGINE_DEVICE_DEVICE_BACKEND_H_
#define ABLATE_SERVER_ENGINE_DEVICE_DEVICE_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/device/device_stream.h"
#include "server/engine/train/backend.h"

namespace ablate::engine {

// Creates the backend of a run whose tensors are on the stream's device. It supports every switch.
// `environment` is what its bits depend on, as Environment().
//
// An update that isn't made freezes all updates after it in its block, on the device; the host
// learns of it at the end of the block, with the exact step. A graph is captured for each shape of
// a batch (packed_batch.h), after two passes that change nothing.
absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend(const RunConfig& run,
                                                           std::string environment,
                                                           std::unique_ptr<DeviceStream> stream);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DEVICE_DEVICE_BACKEND_H_
