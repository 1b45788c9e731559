// The process of a personal server: found, started in the background, recognised and ended.
#ifndef ABLATE_CLIENT_SERVER_PROCESS_H_
#define ABLATE_CLIENT_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/home.h"

namespace ablate::client {

// `ablated` beside this program, else on $PATH. NOT_FOUND says where it was looked for.
absl::StatusOr<std::string> FindServerProgram(const Environment& environment);

// A process of our own that may have ended.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  // How it ended, such as "exit code 1" or "killed by signal 9"; nothing while it runs.
  std::optional<std::string> Ended();

 private:
  pid_t pid_;
};

// Starts `program` in a session of its own, without this process's standard streams and other
// files; what it prints is appended to `log`, an open file.
absl::StatusOr<Child> SpawnServer(const std::string& program,
                                  const std::vector<std::string>& arguments, int log);

// A running server: a descriptor of the process, so that a number used anew is never mistaken
// for it.
class ServerProcess {
 public:
  // The process that the home's pid file names. NOT_FOUND if it has ended; its number may have
  // become another's, also another server's.
  static absl::StatusOr<ServerProcess> Find(const Home& home);
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();

  pid_t pid() const { return pid_; }
  // SIGTERM.
  absl::Status AskToEnd();
  // Whether it ended within `patience`.
  bool WaitUntilGone(absl::Duration patience);

 private:
  ServerProcess(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}
  pid_t pid_;
  int descriptor_;
};

// The last lines, at most `most`, of what a file holds behind its first `offset` bytes.
std::vector<std::string> LastLines(const std::string& path, uint64_t offset, size_t most);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SERVER_PROCESS_H_
