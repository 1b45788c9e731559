// Tests gRPC's own TLS with our certificates, over loopback.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/access/certificates.h"
#include "tests/service/raw_call.h"

namespace ablate::access {
namespace {

using service::RawAnswer;
using testing::HasSubstr;

// Serves health with a certificate.
class TlsServer {
 public:
  explicit TlsServer(const CertifiedKey& pair) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({pair.key, pair.certificate});
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port_);
    builder.RegisterCallbackGenericService(&others_);
    server_ = builder.BuildAndStart();
  }
  ~TlsServer() { server_->Shutdown(); }

  // Calls as a client that trusts the authority and expects the name; none: the address's.
  RawAnswer Call(const CertifiedKey& authority, const std::string& name = "") const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority.certificate;
    grpc::ChannelArguments arguments;
    if (!name.empty()) arguments.SetSslTargetNameOverride(name);
    return service::RawCall(grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                                      grpc::SslCredentials(options), arguments),
                            "/grpc.health.v1.Health/Check", {""});
  }

 private:
  int port_ = 0;
  grpc::CallbackGenericService others_;  // gRPC starts no server without a service
  std::unique_ptr<grpc::Server> server_;
};

class HandshakeTest : public testing::Test {
 protected:
  CertifiedKey Server(absl::Time now, absl::Duration lifetime = kServerLifetime) const {
    return MakeServerCertificate(authority_, {"box.example.org", "2001:db8::7"}, now, lifetime)
        .value();
  }

  const absl::Time now_ = absl::Now();
  const CertifiedKey authority_ = MakeAuthority("box", now_ - absl::Hours(72)).value();
};

void ExpectAnswer(const RawAnswer& answer) {
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.messages.size(), 1u);
}

void ExpectNoHandshake(const RawAnswer& answer, const std::string& what) {
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(answer.status.error_message(), HasSubstr(what));
}

TEST_F(HandshakeTest, AnswersClientsThatTrustTheAuthority) {
  const TlsServer server(Server(now_));
  ExpectAnswer(server.Call(authority_));
  for (const std::string name :
       {"box.example.org", "localhost", "127.0.0.1", "::1", "2001:db8::7"}) {
    SCOPED_TRACE(name);
    ExpectAnswer(server.Call(authority_, name));
  }
}

TEST_F(HandshakeTest, FailsUnderAnotherName) {
  const TlsServer server(Server(now_));
  for (const std::string name : {"other.example.org", "10.0.0.8", "::2"}) {
    ExpectNoHandshake(server.Call(authority_, name), "is not in peer certificate");
  }
}

TEST_F(HandshakeTest, FailsWithAnExpiredCertificate) {
  const TlsServer server(Server(now_ - absl::Hours(48), absl::Hours(24)));
  ExpectNoHandshake(server.Call(authority_), "certificate verify failed");
}

TEST_F(HandshakeTest, FailsBeforeTheCertificateIsValid) {
  const TlsServer server(Server(now_ + absl::Hours(48)));
  ExpectNoHandshake(server.Call(authority_), "certificate verify failed");
}

TEST_F(HandshakeTest, FailsWithAnotherAuthorityOfThatName) {
  const TlsServer server(Server(now_));
  ExpectNoHandshake(server.Call(MakeAuthority("box", now_).value()), "certificate verify failed");
}

}  // namespace
}  // namespace ablate::access
