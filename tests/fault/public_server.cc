// A server for attacks.py: health with a token. "--bare" is gRPC's own TLS port instead of ours,
// for comparison; NAME=NUMBER sets an argument of gRPC, and quota=BYTES its memory. Prints its
// port, and ends with its standard input.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/net/public_port.h"
#include "tests/net/authenticate.h"
#include "tests/net/self_signed.h"

namespace ablate::rpc {
namespace {

// Runs AuthenticateTestCall for gRPC's own port.
class TokenProcessor final : public grpc::AuthMetadataProcessor {
 public:
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    const absl::Status authenticated = AuthenticateTestCall(metadata, "").status;
    return {static_cast<grpc::StatusCode>(authenticated.code()),
            std::string(authenticated.message())};
  }
};

void SetArgument(const std::string& text, grpc::ServerBuilder* builder) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, '=');
  int value = 0;
  if (!absl::SimpleAtoi(parts.second, &value)) return;
  if (parts.first == "quota") {
    builder->SetResourceQuota(grpc::ResourceQuota("bare").Resize(value));
  } else {
    builder->AddChannelArgument(parts.first, value);
  }
}

int Main(int argc, char** argv) {
  const bool bare = argc > 1 && std::string(argv[1]) == "--bare";
  const SelfSigned made = MakeSelfSigned();
  auto listening = net::PublicPort::Listen(
      {"127.0.0.1:0", made.certificate, made.private_key, AuthenticateTestCall, nullptr});
  if (!listening.ok()) {
    std::cerr << listening.status() << "\n";
    return EXIT_FAILURE;
  }
  const std::unique_ptr<net::PublicPort> public_port = *std::move(listening);
  grpc::EnableDefaultHealthCheckService(true);
  // Health has a thread and a queue of its own; the callback API uses gRPC's threads.
  grpc::CallbackGenericService nothing;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&nothing);
  int port = public_port->port();
  if (bare) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({made.private_key, made.certificate});
    const auto credentials = grpc::SslServerCredentials(options);
    credentials->SetAuthMetadataProcessor(std::make_shared<TokenProcessor>());
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  } else {
    public_port->Prepare(&builder);
  }
  for (int i = bare ? 2 : 1; i < argc; ++i) SetArgument(argv[i], &builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return EXIT_FAILURE;
  server->GetHealthCheckService()->SetServingStatus(true);
  if (!bare) public_port->Serve();
  std::cout << port << std::endl;
  std::string line;
  std::getline(std::cin, line);
  public_port->StopAccepting();
  server->Shutdown(std::chrono::system_clock::now());
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace ablate::rpc

int main(int argc, char** argv) { return ablate::rpc::Main(argc, argv); }
