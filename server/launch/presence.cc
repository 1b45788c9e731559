#include "server/launch/presence.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/process_id.h"
#include "base/socket_path.h"
#include "base/status_macros.h"

namespace ablate::launch {
namespace {

std::optional<FilePlace> LookAt(const std::string& path) {
  struct stat found;
  if (lstat(path.c_str(), &found) != 0) return std::nullopt;
  return FilePlace{path, found.st_dev, found.st_ino};
}

bool IsGone(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

// Returns true if the file is gone or another. If it can't be checked, assumes that it is
// unchanged.
bool IsLost(const FilePlace& place) {
  const std::optional<FilePlace> now = LookAt(place.path);
  if (!now) return IsGone(place.path);
  return now->device != place.device || now->inode != place.inode;
}

// Returns a path next to the socket, shorter than any socket's name.
std::string DraftOf(const std::string& socket, absl::string_view suffix) {
  const std::string folder = std::filesystem::path(socket).parent_path().string();
  return absl::StrCat(folder, "/", getpid(), ".", suffix);
}

absl::StatusOr<FilePlace> TakeName(const std::string& draft, const std::string& socket) {
  std::optional<FilePlace> place = LookAt(draft);
  if (!place || std::rename(draft.c_str(), socket.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make socket ", socket));
  }
  place->path = socket;
  return *std::move(place);
}

void Leave(std::optional<FilePlace>* socket) {
  if (socket->has_value() && !IsLost(**socket)) unlink((*socket)->path.c_str());
  socket->reset();
}

}  // namespace

Presence::Presence(Home home) : home_(std::move(home)), folder_(LookAt(home_.folder)) {}

Presence::~Presence() {
  LeaveClients();
  LeaveWorkers();
  process::RemovePidFile(home_.pid_file, getpid());
}

std::string Presence::client_draft() const { return DraftOf(home_.client_socket, "c"); }
std::string Presence::worker_draft() const { return DraftOf(home_.worker_socket, "w"); }

absl::Status Presence::TakeSocketNames() {
  ASSIGN_OR_RETURN(client_socket_, TakeName(client_draft(), home_.client_socket));
  ASSIGN_OR_RETURN(worker_socket_, TakeName(worker_draft(), home_.worker_socket));
  return absl::OkStatus();
}

absl::Status Presence::Announce() {
  absl::Status written = WritePidFile();
  written.Update(process::ReplaceFile(
      home_.address_file, absl::StrCat(process::SocketAddress(home_.client_socket), "\n")));
  return written;
}

bool Presence::Keep() {
  const bool found = OwnsFolder() && client_socket_.has_value() && !IsLost(*client_socket_) &&
                     worker_socket_.has_value() && !IsLost(*worker_socket_);
  if (!found) return false;
  // A failure is retried at the next call.
  if (IsGone(home_.pid_file) || IsGone(home_.address_file)) Announce().IgnoreError();
  return true;
}

absl::Status Presence::AnnounceEnd() {
  if (!OwnsFolder()) return absl::OkStatus();
  const absl::Status made = PrepareHome(home_.folder).status();
  return made.ok() ? WritePidFile() : made;
}

bool Presence::OwnsFolder() const { return folder_.has_value() && !IsLost(*folder_); }

void Presence::LeaveClients() {
  if (client_socket_.has_value() && OwnsFolder()) unlink(home_.address_file.c_str());
  Leave(&client_socket_);
}

void Presence::LeaveWorkers() { Leave(&worker_socket_); }

absl::Status Presence::WritePidFile() {
  // This process exists, so that Identify succeeds.
  return process::WritePidFile(home_.pid_file, {*process::Identify(getpid()), ""});
}

}  // namespace ablate::launch
