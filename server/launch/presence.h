// Manages the files by which others find a server in its folder: the names of its sockets, its
// address and its pid file.
#ifndef ABLATE_SERVER_LAUNCH_PRESENCE_H_
#define ABLATE_SERVER_LAUNCH_PRESENCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/launch/home.h"

namespace ablate::launch {

// Identifies a file at a path; another file of the same name isn't ours.
struct FilePlace {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Owned by the process that holds the lock of the home folder. If the folder is removed or
// replaced, it may belong to another server: nothing in it is written or removed any more. Not
// thread-safe.
class Presence {
 public:
  explicit Presence(Home home);
  // Removes the sockets' names, the address and, if it names this process, the pid file.
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // Return the paths to listen on before TakeSocketNames. Closing a socket removes its name, so
  // that it must not be a name that another server may have taken. At most as long as the sockets'
  // names.
  std::string client_draft() const;
  std::string worker_draft() const;
  // Renames these sockets to the names that clients and workers look for.
  absl::Status TakeSocketNames();
  // Writes the address for clients, and the process for `ablate down`.
  absl::Status Announce();
  // Returns true if clients and workers still find this server. Missing or replaced sockets can't
  // be recreated; missing address or pid files are rewritten.
  bool Keep();
  // Writes the pid file again after Keep returned false, so that `ablate down` and `ablate up` find
  // the process until it has ended.
  absl::Status AnnounceEnd();
  // Returns true if the folder still is the one whose lock is held.
  bool OwnsFolder() const;
  // Hides the server from new clients. Call it before the socket is closed, because its inode may
  // be reused afterwards.
  void LeaveClients();
  // Hides the server from new workers.
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
