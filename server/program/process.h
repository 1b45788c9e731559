// Starts a program, in the sandbox or without it, and ends everything that it started.
#ifndef ABLATE_SERVER_PROGRAM_PROCESS_H_
#define ABLATE_SERVER_PROGRAM_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "server/program/launch.h"
#include "server/program/request.h"

namespace ablate::program {

// Describes how a program ended.
struct Exit {
  bool started = true;  // false: the sandbox ended before it started the program
  int code = 0;
  // 0: none. In the sandbox, exit codes 129–192 are taken for signals, as in shells.
  int signal = 0;
  bool lost = false;  // the process that watched it has ended, and the program with it
};

// A running program with its pipes. For one thread, the one that starts it and outlives it.
class Process {
 public:
  // Starts the program of a checked request, whose processes the kernel kills when this thread
  // ends. In the sandbox all of them are in one namespace, which dies with its first process.
  // Without it, they are found by a variable of their environment: a process that has changed its
  // environment and left the program's process group may stay. Returns FAILED_PRECONDITION if the
  // sandbox can't be made. If the command doesn't exist or can't be executed, the sandbox ends
  // before it has started the program; without a sandbox, that is an error of exec.
  // With a socket, the program may make further sandboxes inside of its own, so that it keeps some
  // capabilities there (SandboxOptions); it gets the socket in place of the metrics descriptor.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Request& request,
                                                        const process::FileDescriptor& socket = {});
  // Kills all processes and waits until they are gone, at most 10 seconds.
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Return the read ends of the pipes, which are non-blocking.
  const process::FileDescriptor& log() const { return log_; }
  const process::FileDescriptor& metrics() const { return metrics_; }
  // Writes a line that the program may read. Drops it if the program has left too many unread.
  void Reply(absl::string_view line);

  // Sends a signal to the program. A shell doesn't forward signals, so its commands get it, too.
  // Returns false before the program has been started, and after its end.
  virtual bool Signal(int number) = 0;
  virtual void Kill() = 0;
  // Returns how the program ended, once all other processes that it started have been killed and
  // are gone; nothing before.
  virtual std::optional<Exit> TryWait() = 0;
  // Returns a descriptor that is readable when TryWait may have news.
  virtual int EndDescriptor() const = 0;
  // Returns the live processes of the program, about `max` at most.
  virtual std::vector<pid_t> Processes(size_t max) const = 0;

 protected:
  // The ends of the pipes that the program gets.
  struct ProgramEnds {
    process::FileDescriptor input;  // /dev/null
    process::FileDescriptor log;
    process::FileDescriptor metrics;
  };

  Process() = default;
  absl::StatusOr<ProgramEnds> MakeEnds();
  // Kills the program and waits for its end, as the destructor promises.
  void End();

  process::FileDescriptor log_;
  process::FileDescriptor metrics_;
  Pipe replies_;  // has the read end, too, so that a write raises no SIGPIPE
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_PROCESS_H_
