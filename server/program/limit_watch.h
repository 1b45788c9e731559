// Checks the limits of a run now and then.
#ifndef ABLATE_SERVER_PROGRAM_LIMIT_WATCH_H_
#define ABLATE_SERVER_PROGRAM_LIMIT_WATCH_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/program/process.h"
#include "server/program/request.h"

namespace ablate::program {

// Returns the bytes on disk of the files in a folder and its subfolders, without following links; a
// file with several names counts for each. INVALID_ARGUMENT if it has more than `max_files` files
// and folders, or is nested too deep for WalkFolder.
absl::StatusOr<uint64_t> MeasureFolder(const std::string& folder, size_t max_files);

// Names a limit that a run has reached.
struct Breach {
  std::string limit;   // time, memory, disk or processes
  std::string reason;  // such as "memory: 1.2 GB used; limit 1 GB"
};

// Compares a run with its limits. A check costs some tens of microseconds per process; the size of
// the folder is measured less often, so that it takes at most a twentieth of the time.
class LimitWatch {
 public:
  // `started` is by MonotonicNow. The request must outlive the watch.
  LimitWatch(const Request& request, absl::Duration started);

  // Returns the time of the next check.
  absl::Duration next() const { return next_; }
  // Returns the limit that the run has reached, if any.
  std::optional<Breach> Check(const Process& process, absl::Duration now);
  // Returns a breach if the folder is full. Call it when the program has failed: it may have been
  // ended by that.
  std::optional<Breach> CheckDisk();

 private:
  std::optional<Breach> CheckMemory(const std::vector<pid_t>& pids) const;

  const Request& request_;
  const absl::Duration time_end_;
  absl::Duration period_;      // short while processes are being started
  size_t last_processes_ = 0;  // at the last check
  absl::Duration next_;
  absl::Duration next_disk_;
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_LIMIT_WATCH_H_
