#include "proto/join/channel.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "base/host.h"
#include "proto/metadata.h"

namespace ablate::join {
ServerAddress AddressOf(const v1::JoinFile& file, const std::string& login) {
  return {file.address(), login, file.server_name(), file.certificate_authority(), file.token()};
}

namespace {

// During a call. A server on this machine that dies closes its socket; a network that fails
// doesn't. A server allows a ping each 10 s.
constexpr int kPingAfterMillis = 30'000;
constexpr int kPingTimeoutMillis = 20'000;

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const ServerAddress& server,
                                           grpc::ChannelArguments arguments) {
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (server.authority.empty()) {
    return grpc::CreateCustomChannel(server.address, grpc::InsecureChannelCredentials(), arguments);
  }
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMillis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMillis);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = server.authority;
  const auto reached_at = text::ParseHostPort(server.address);
  if (!reached_at.ok() || server.server_name != reached_at->host.text) {
    arguments.SetSslTargetNameOverride(server.server_name);
  }
  return grpc::CreateCustomChannel(server.address, grpc::SslCredentials(options), arguments);
}

void AddMetadata(const ServerAddress& server, grpc::ClientContext* context) {
  context->AddMetadata(kRelease, ABLATE_VERSION);
  if (server.authority.empty() || server.token.empty()) return;
  context->AddMetadata("authorization", absl::StrCat("Bearer ", server.token));
}

}  // namespace ablate::join
