// Names and addresses of machines, as people write them and as certificates hold them.
#ifndef ABLATE_BASE_HOST_H_
#define ABLATE_BASE_HOST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::text {

struct Host {
  // A DNS name in lower case, or an IP address in canonical form, so that equal hosts have equal
  // texts.
  std::string text;
  // The 4 or 16 bytes of an IP address in network order; empty for a DNS name.
  std::string address;

  friend bool operator==(const Host&, const Host&) = default;
};

// Parses a DNS name (labels of letters, digits and inner hyphens, in ASCII; other names as xn--…),
// an IPv4 address, or an IPv6 address with or without brackets. Otherwise INVALID_ARGUMENT with the
// problem; the caller adds the text itself.
absl::StatusOr<Host> ParseHost(absl::string_view text);

struct HostPort {
  Host host;
  uint16_t port = 0;
};

// Parses "HOST:PORT"; an IPv6 address is in brackets. Pass `least_port` 0 for a listening address,
// which then may ask for any free port. Errors as ParseHost's.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, uint16_t least_port = 1);

}  // namespace ablate::text

#endif  // ABLATE_BASE_HOST_H_
