#include "server/rpc/listen.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpc/health/v1/health.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_interceptor.h"
#include "server/rpc/errors.h"

namespace ablate::rpc {
namespace {

constexpr size_t kMaxSocketPathBytes = 107;
constexpr int kMaxCallsPerConnection = 1'024;
constexpr int kMinPingMillis = 10'000;
// A peer that is gone, or stopped, without a word: its connection and its streams end after both.
constexpr int kPingAfterMillis = 60'000;
constexpr int kPingTimeoutMillis = 20'000;

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't listen on ", path, ": there is a file that is no socket"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't listen on ", path, ": can't remove the old socket"));
  }
  return absl::OkStatus();
}

// What gRPC makes of the path of an address.
std::string Unescape(absl::string_view text) {
  std::string path;
  while (!text.empty()) {
    const bool escaped = text.size() >= 3 && text[0] == '%' && absl::ascii_isxdigit(text[1]) &&
                         absl::ascii_isxdigit(text[2]);
    path += escaped ? absl::HexStringToBytes(text.substr(1, 2)) : std::string(1, text[0]);
    text.remove_prefix(escaped ? 3 : 1);
  }
  return path;
}

absl::Status PrepareSocket(const std::string& address) {
  absl::string_view rest = address;
  const bool is_unix = absl::ConsumePrefix(&rest, "unix:");
  const std::string path = Unescape(rest);
  if (!is_unix || path.empty() || path.size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("can't listen on ", address,
                                                   ": must be unix:PATH, PATH of at most ",
                                                   kMaxSocketPathBytes, " bytes"));
  }
  return RemoveStaleSocket(path);
}

using grpc::experimental::InterceptionHookPoints;

// gRPC's callback API answers a request that it can't parse as if the method did not exist, with
// UNIMPLEMENTED and no message; this makes it INVALID_ARGUMENT with a sentence.
class MalformedExplainer final : public grpc::experimental::Interceptor {
 public:
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus(ToGrpc(MalformedRequest()));
      }
    }
    methods->Proceed();
  }
};

class MalformedExplainers final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    // Methods that really do not exist come as bidirectional; those that are have no first request
    // to parse.
    if (info->type() == grpc::experimental::ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    return new MalformedExplainer;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(
    const std::string& address, int max_message_bytes,
    const std::vector<std::unique_ptr<grpc::Service>>& services) {
  if (const absl::Status prepared = PrepareSocket(address); !prepared.ok()) return prepared;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // gRPC serves health without its descriptors; reflection finds them once they are linked in.
  grpc::health::v1::HealthCheckRequest::descriptor();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  for (const std::unique_ptr<grpc::Service>& service : services) {
    builder.RegisterService(service.get());
  }
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<MalformedExplainers>());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  builder.SetMaxReceiveMessageSize(max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("can't listen on ", address));
  }
  server->GetHealthCheckService()->SetServingStatus(true);
  return server;
}

}  // namespace ablate::rpc
