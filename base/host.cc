#include "base/host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace ablate::text {
namespace {

constexpr size_t kMaxName = 253;
constexpr size_t kMaxLabel = 63;
constexpr size_t kIpv4Bytes = 4;
constexpr size_t kIpv6Bytes = 16;

// Returns true and fills `host` if `text` is an address of that family.
bool IsAddress(int family, size_t bytes, const std::string& text, Host& host) {
  std::string address(bytes, '\0');
  if (inet_pton(family, text.c_str(), address.data()) != 1) return false;
  char usual[INET6_ADDRSTRLEN];
  inet_ntop(family, address.data(), usual, sizeof usual);
  host = {usual, std::move(address)};
  return true;
}

bool IsLabel(absl::string_view label) {
  return !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-';
         });
}

bool IsNumber(absl::string_view label) {
  return std::all_of(label.begin(), label.end(), absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<Host> ParseHost(absl::string_view text) {
  // Don't copy longer texts, nor one with a zero byte, at which the system's functions would stop.
  if (text.empty() || text.size() > kMaxName ||
      absl::StrContains(text, absl::string_view("\0", 1))) {
    return absl::InvalidArgumentError("a host has 1 to 253 characters");
  }
  Host host;
  if (text.front() == '[' || absl::StrContains(text, ":")) {
    const bool brackets = text.front() == '[' && text.back() == ']' && text.size() > 2;
    const absl::string_view inner = brackets ? text.substr(1, text.size() - 2) : text;
    if (IsAddress(AF_INET6, kIpv6Bytes, std::string(inner), host)) return host;
    return absl::InvalidArgumentError("not an IPv6 address, such as ::1 or 2001:db8::7");
  }
  if (IsAddress(AF_INET, kIpv4Bytes, std::string(text), host)) return host;
  const std::vector<absl::string_view> labels = absl::StrSplit(text, '.');
  if (IsNumber(labels.back())) {
    return absl::InvalidArgumentError(
        "ends in a number and is not an IPv4 address: four numbers from 0 to 255, such as "
        "10.0.0.7");
  }
  if (!std::all_of(labels.begin(), labels.end(), IsLabel)) {
    return absl::InvalidArgumentError(
        "not a DNS name, such as box.example.org: parts of 1 to 63 letters, digits and inner "
        "hyphens with dots between them");
  }
  host.text = absl::AsciiStrToLower(text);
  return host;
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, uint16_t least_port) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError("without a port: HOST:PORT, such as box.example.org:7433");
  }
  const absl::string_view host_text = text.substr(0, colon);
  const absl::string_view digits = text.substr(colon + 1);
  if (absl::StrContains(host_text, ":") && !absl::StartsWith(host_text, "[")) {
    return absl::InvalidArgumentError("an IPv6 address with a port needs brackets: [::1]:7433");
  }
  ASSIGN_OR_RETURN(Host host, ParseHost(host_text));
  uint32_t port = 0;
  if (digits.empty() || !IsNumber(digits) || !absl::SimpleAtoi(digits, &port) ||
      port < least_port || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the port is a number from ", least_port, " to 65535"));
  }
  return HostPort{std::move(host), static_cast<uint16_t>(port)};
}

}  // namespace ablate::text
