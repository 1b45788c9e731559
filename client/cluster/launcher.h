// Keeps as many pilots as the queue wants: workers on machines of another scheduler, such as Slurm.
#ifndef ABLATE_CLIENT_CLUSTER_LAUNCHER_H_
#define ABLATE_CLIENT_CLUSTER_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ablate::client {

// A pilot as its scheduler knows it.
struct LaunchedPilot {
  std::string handle;  // by which the scheduler ends it, such as the number of its job
  std::string worker;  // name of the worker that it starts; chosen before it is started
  bool pending = false;
  std::string reason;  // why it waits, in the scheduler's words; may be empty
};

// Another scheduler: a few calls that any has. Errors are its own words.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // Returns the pilots that wait or run, by the names of their workers. The name is known before
  // the start, so a pilot that a failed Start has started nevertheless is in this list.
  virtual absl::StatusOr<std::vector<LaunchedPilot>> List() = 0;
  // Starts a pilot. `stays`: it doesn't end when it has no work.
  virtual absl::Status Start(const std::string& worker, bool stays) = 0;
  virtual absl::Status End(const LaunchedPilot& pilot) = 0;
};

// The pilots to keep, as in SyncPilotsRequest.
struct PoolOptions {
  std::string cluster;
  uint32_t min = 0;
  uint32_t max = 1;
  std::string device_kind = "cpu";
  uint32_t lanes = 0;
};

using SyncPilots = std::function<absl::StatusOr<worker::v1::SyncPilotsResponse>(
    const worker::v1::SyncPilotsRequest& request)>;

// Not thread-safe.
class PilotPool {
 public:
  // `random_name` returns what makes the name of a worker unique. `say` prints a line for people.
  PilotPool(PoolOptions options, Launcher* launcher, SyncPilots sync,
            std::function<std::string()> random_name,
            std::function<void(const std::string& line)> say);

  // Lists the pilots, reports them to the server, and starts or ends some as it says. An error of
  // the launcher or the server is said once, until another one follows, and returned; the next
  // round tries again. Nothing is started while the pilots can't be listed.
  absl::Status Round();

 private:
  absl::Status Follow(const worker::v1::SyncPilotsResponse& orders);
  void Say(const std::string& line);

  const PoolOptions options_;
  Launcher* const launcher_;
  const SyncPilots sync_;
  const std::function<std::string()> random_name_;
  const std::function<void(const std::string&)> say_;
  std::vector<LaunchedPilot> pilots_;  // as last listed
  std::string said_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CLUSTER_LAUNCHER_H_
