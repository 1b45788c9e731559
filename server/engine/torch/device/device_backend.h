// Implements the backend of an accelerator: blocks of updates without waiting for the device, each
// update a captured graph.
#ifndef ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_BACKEND_H_
#define ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_BACKEND_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/torch/device/device_run.h"
#include "server/engine/torch/device/device_stream.h"

namespace ablate::engine {

// Keeps small runs that have ended, because capturing graphs takes as long as hundreds of their
// updates: the next run with the same graphs, usually another seed, takes one over. Thread-safe.
class EndedRuns {
 public:
  // Returns a run with this key, or null.
  std::unique_ptr<DeviceRun> Take(const RunConfig& key);
  // Keeps a run, unless it is large; the oldest is dropped when there are too many.
  void Put(RunConfig key, std::unique_ptr<DeviceRun> run);
  // Drops all, which frees their memory.
  void Clear();

 private:
  struct Ended {
    RunConfig key;
    std::unique_ptr<DeviceRun> run;
  };

  Mutex mutex_;
  std::vector<Ended> runs_ ABSL_GUARDED_BY(mutex_);  // the oldest first
};

// Creates the backend of a run whose tensors are on the source's device. It supports every switch.
// `environment` is what its bits depend on, as Environment(). `ended`, which must outlive the
// result, keeps runs for later ones.
//
// An update that isn't made freezes all updates after it in its block, on the device; the host
// learns of it at the end of the block, with the exact step. A graph is captured for each shape of
// a batch (packed_batch.h), after two passes that change nothing.
absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend(const RunConfig& run,
                                                           std::string environment,
                                                           StreamSource& source, EndedRuns& ended);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_DEVICE_DEVICE_BACKEND_H_
