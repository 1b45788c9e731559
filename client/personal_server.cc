#include "client/personal_server.h"

#include <poll.h>
#include <signal.h>

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 forgot to say that these are C functions
}

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process_id.h"
#include "base/socket_path.h"
#include "base/status_macros.h"
#include "client/logins.h"

namespace ablate::client {
namespace {

bool IsLocal(absl::string_view address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "localhost:") ||
         absl::StartsWith(address, "127.0.0.1:") || absl::StartsWith(address, "[::1]:");
}

}  // namespace

absl::StatusOr<Home> FindHome(const std::string& folder, const Environment& environment) {
  const std::filesystem::path path = folder.empty() ? process::DefaultHome(environment) : folder;
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "no folder for the personal server: set ABLATE_HOME or HOME");
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(path.string(), ": ", error.message()));
  }
  return Home(absolute.string());
}

absl::StatusOr<std::string> ReadAddress(const Home& home) {
  std::ifstream in(home.address_file);
  std::string line;
  std::getline(in, line);
  const absl::string_view written = absl::StripAsciiWhitespace(line);
  const absl::Status none =
      absl::UnavailableError(absl::StrCat("no server runs in ", home.folder, ": run `ablate up`"));
  // The file may be a copy, or moved with its folder: it then names another folder's server, or one
  // that ends as soon as it notices.
  std::error_code error;
  const Home real(std::filesystem::canonical(home.folder, error).string());
  if (error) return none;
  const auto socket = process::SocketInRunFolder(real, process::kClientSocket);
  const bool is_ours =
      socket ? written == process::SocketAddress(*socket)
             : IsLocal(written) &&
                   absl::EndsWith(written, absl::StrCat("/", process::SocketNameElsewhere(
                                                                 real, process::kClientSocket)));
  if (!is_ours) return none;
  return std::string(written);
}

absl::StatusOr<ServerAddress> FindServer(const Environment& environment) {
  const auto named = environment("ABLATE_SERVER");
  if (named && IsLocal(*named)) {
    ServerAddress local{*named};
    local.given = true;
    return local;
  }
  const absl::StatusOr<Logins> logins = Logins::Of(environment);
  const std::string login = named ? *named : logins.ok() ? logins->Current() : "";
  if (!login.empty() && login != kPersonal) {
    const absl::Status asked = Logins::CheckName(login);
    if (!asked.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ABLATE_SERVER or --server: \"", login,
          "\" is not a server; expected unix:PATH, localhost:PORT, personal, or the name of a "
          "login. A server on another machine needs `ablate login --join FILE` first."));
    }
    if (!logins.ok()) return logins.status();
    auto join = logins->Find(login);
    if (!join.ok()) return join.status();
    return join::AddressOf(*join, login);
  }
  ASSIGN_OR_RETURN(const Home home, FindHome("", environment));
  ASSIGN_OR_RETURN(auto address, ReadAddress(home));
  return ServerAddress{std::move(address)};
}

absl::StatusOr<ServerProcess> ServerProcess::Find(const Home& home) {
  const absl::Status none = absl::NotFoundError(absl::StrCat("no server runs in ", home.folder));
  const auto named = process::FindByPidFile(home.pid_file);
  if (!named) return none;
  const int descriptor = pidfd_open(named->process.pid, 0);
  if (descriptor < 0) return none;
  // Looked at after the descriptor holds on to the process: it can't become another one.
  ServerProcess process(named->process.pid, descriptor);
  if (process::Identify(named->process.pid) != named->process) return none;
  return process;
}

absl::Status ServerProcess::Terminate() {
  if (pidfd_send_signal(descriptor_.get(), SIGTERM, nullptr, 0) == 0 || errno == ESRCH) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("process ", pid_, " can't be ended: ", std::strerror(errno)));
}

bool ServerProcess::WaitForExit(absl::Duration timeout) {
  pollfd ended{descriptor_.get(), POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) == 1;
}

}  // namespace ablate::client
