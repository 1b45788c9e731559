// Names the sockets by which the server of a personal folder is reached.
#ifndef ABLATE_BASE_SOCKET_PATH_H_
#define ABLATE_BASE_SOCKET_PATH_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/private_folder.h"

namespace ablate::process {

// The longest path of a socket: sockaddr_un has 108 bytes including the terminating zero.
inline constexpr size_t kMaxSocketPath = 107;

// File name of the socket for clients.
inline constexpr char kClientSocket[] = "ablate.sock";

// Returns the path of a socket in the home's run folder; nothing if it exceeds kMaxSocketPath. The
// socket is then elsewhere, by SocketNameElsewhere.
std::optional<std::string> SocketInRunFolder(const HomeFiles& home, absl::string_view name);

// Returns a file name that differs from those of other homes. `home.folder` contains no links.
std::string SocketNameElsewhere(const HomeFiles& home, absl::string_view name);

// Returns the gRPC address of a socket, "unix:PATH". An address is a URI, so bytes with a meaning
// in one (%, ?, #, space, line end, bytes beyond ASCII) become %XX.
std::string SocketAddress(absl::string_view path);

}  // namespace ablate::process

#endif  // ABLATE_BASE_SOCKET_PATH_H_
