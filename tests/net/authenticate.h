// Says who may call a port under test.
#ifndef ABLATE_TESTS_NET_AUTHENTICATE_H_
#define ABLATE_TESTS_NET_AUTHENTICATE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/net/public_port.h"

namespace ablate::rpc {

// "good" is ada's token, "better" bob's, "hostile" belongs to eve, an attacker. "weak" is rex's,
// whose role admits no call.
inline net::CheckedCall AuthenticateTestCall(const net::CallMetadata& metadata,
                                             const std::string&) {
  constexpr std::pair<const char*, const char*> kUsers[] = {{"Bearer good", "ada"},
                                                            {"Bearer better", "bob"},
                                                            {"Bearer hostile", "eve"},
                                                            {"Bearer weak", "rex"}};
  const auto found = metadata.find("authorization");
  for (const auto& [token, user] : kUsers) {
    if (found == metadata.end() || found->second != token) continue;
    const std::string name = user;
    if (name == "rex") return {name, absl::PermissionDeniedError("the role is too small")};
    return {name, absl::OkStatus()};
  }
  return {"", absl::UnauthenticatedError("no token")};
}

}  // namespace ablate::rpc

#endif  // ABLATE_TESTS_NET_AUTHENTICATE_H_
