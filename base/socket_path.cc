#include "base/socket_path.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ablate::process {
namespace {

// FNV-1a: a folder gives the same socket after every restart.
uint64_t Hash(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

std::optional<std::string> SocketInRunFolder(const HomeFiles& home, absl::string_view name) {
  std::string path = absl::StrCat(home.run_folder, "/", name);
  if (path.size() > kMaxSocketPath) return std::nullopt;
  return path;
}

std::string SocketNameElsewhere(const HomeFiles& home, absl::string_view name) {
  return absl::StrFormat("%016x-%s", Hash(home.folder), name);
}

std::string SocketAddress(absl::string_view path) {
  std::string address = "unix:";
  for (const char c : path) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("/-._~", c)) {
      address += c;
    } else {
      absl::StrAppendFormat(&address, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return address;
}

}  // namespace ablate::process
