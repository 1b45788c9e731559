// One worker process: starting it, recognising it again after a restart of the server, its last
// words.
#ifndef ABLATE_SERVER_LAUNCH_PROCESS_H_
#define ABLATE_SERVER_LAUNCH_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "process/identity.h"
#include "server/launch/local.h"

namespace ablate::launch {

// A descriptor that is closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A worker's process, and what it was started with.
struct ProcessId : process::ProcessId {
  std::string command;  // CommandHash of what it was started with; empty if unknown
};

// Differs between commands that make another worker: program (its path and the file that is there
// now, which an upgrade replaces) and arguments.
std::string CommandHash(const WorkerCommand& command);

// Starts the command in a session of its own, so that it outlives the server: stdin from /dev/null,
// stdout and stderr appended to the log file, no other descriptor inherited, no signal blocked. One
// OpenMP and MKL thread unless the environment says otherwise. NOT_FOUND or PERMISSION_DENIED if it
// can't be started.
absl::StatusOr<ProcessId> Spawn(const WorkerCommand& command);

// The process that the file names, if it is still that very process.
std::optional<ProcessId> FindByPidFile(const std::string& file);

// Replaces the file. Its first line begins with the process's number; the second is the command's
// hash.
absl::Status WritePidFile(const std::string& file, const ProcessId& process);

// How a process ended, from waitid's answer; `log_tail` is its last line or empty. Exit code 0 is
// an orderly leave.
ChildExit DescribeExit(absl::string_view worker, const siginfo_t& ended,
                       absl::string_view log_tail);

// Last non-empty line written after byte `from`, at most 500 bytes; empty if there is none.
std::string LastLine(const std::string& file, uint64_t from);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_PROCESS_H_
