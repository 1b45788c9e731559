// Names and addresses of machines, as people write them and as certificates hold them.
#ifndef ABLATE_TEXT_HOST_H_
#define ABLATE_TEXT_HOST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::text {

struct Host {
  // A DNS name in lower case, or an IP address in its usual spelling: two spellings of one are one.
  std::string text;
  // The 4 or 16 bytes of an IP address, first byte first; empty for a DNS name.
  std::string address;

  friend bool operator==(const Host&, const Host&) = default;
};

// A DNS name (labels of letters, digits and inner hyphens; in ASCII, so that other names are
// written as xn--…), an IPv4 or an IPv6 address, the latter in brackets or not. INVALID_ARGUMENT
// otherwise, with what is wrong and without the text itself, which the caller names.
absl::StatusOr<Host> ParseHost(absl::string_view text);

struct HostPort {
  Host host;
  uint16_t port = 0;
};

// "HOST:PORT"; an IPv6 address is in brackets. Only who listens may ask for port 0, any that is
// free. Errors as ParseHost's.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, uint16_t least_port = 1);

}  // namespace ablate::text

#endif  // ABLATE_TEXT_HOST_H_
