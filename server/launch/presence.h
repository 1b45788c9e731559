// By what others find a server in its home: the names of its sockets, its address and its pid file.
#ifndef ABLATE_SERVER_LAUNCH_PRESENCE_H_
#define ABLATE_SERVER_LAUNCH_PRESENCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/launch/home.h"

namespace ablate::launch {

// A path and the file that was there once: another one of that name is somebody else's.
struct FilePlace {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Of the process that holds the lock of the home's folder. Removed or replaced under it, the folder
// may be another server's: then nothing there is written or removed any more. Not thread-safe.
class Presence {
 public:
  explicit Presence(Home home);
  // Removes the sockets' names, the address and, if it names this process, the pid file.
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // Where to listen before TakeSocketNames: who closes a socket removes its name, so that it must
  // be none that another server may have by then. At most as long as the sockets' names.
  std::string client_draft() const;
  std::string worker_draft() const;
  // Gives what listens there the names that clients and workers look for.
  absl::Status TakeSocketNames();
  // Tells clients where the server is, and `ablate down` which process.
  absl::Status Announce();
  // Whether clients and workers still find this server; sockets that are gone, or others, can't be
  // made again. What only names it is written again.
  bool Keep();
  // For when Keep said no: `ablate down` and `ablate up` find the process until it has ended.
  absl::Status AnnounceEnd();
  // Whether the folder still is the one whose lock is held.
  bool OwnsFolder() const;
  // For when new clients are to find no server; before the socket is closed, whose inode another
  // file may get then.
  void LeaveClients();
  // The same for workers.
  void LeaveWorkers();

 private:
  absl::Status WritePidFile();

  const Home home_;
  const std::optional<FilePlace> folder_;
  std::optional<FilePlace> client_socket_;
  std::optional<FilePlace> worker_socket_;
};

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_PRESENCE_H_
