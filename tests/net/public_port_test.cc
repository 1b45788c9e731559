// Tests gRPC's own client through the public port.
#include "server/net/public_port.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/lookup/limits.h"
#include "server/net/public_limits.h"
#include "tests/net/authenticate.h"
#include "tests/net/self_signed.h"

namespace ablate::rpc {
namespace {

using testing::EndsWith;
using testing::StartsWith;

// Answers a message with itself and the origin of the call.
class Echo final : public grpc::CallbackGenericService {
 public:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      if (ok) StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
      if (!ok) Finish(grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

// Holds the first text that is put in.
class Said {
 public:
  void Put(const std::string& said) {
    if (!put_.exchange(true)) first_.set_value(said);
  }
  std::string Wait() { return first_.get_future().get(); }

 private:
  std::atomic<bool> put_ = false;
  std::promise<std::string> first_;
};

struct Answer {
  grpc::Status status;
  size_t bytes = 0;
};

class PublicPortTest : public testing::Test {
 protected:
  PublicPortTest() {
    // Never shut down: gRPC's last end waits for a poller of its own, up to ten seconds.
    static const bool kept = (grpc_init(), true);
    EXPECT_TRUE(kept);
    const auto authenticate = [this](const net::CallMetadata& metadata,
                                     const std::string& address) {
      from_.Put(address);
      return AuthenticateTestCall(metadata, address);
    };
    auto listening = net::PublicPort::Listen(
        {"127.0.0.1:0", certificate_.certificate, certificate_.private_key, authenticate,
         [this](const std::string& said) { said_.Put(said); }});
    EXPECT_TRUE(listening.ok()) << listening.status();
    port_ = *std::move(listening);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&echo_);
    port_->Prepare(&builder);
    server_ = builder.BuildAndStart();
    port_->Serve();
    channel_ = Connect();
  }
  ~PublicPortTest() override {
    channel_ = nullptr;
    port_->StopAccepting();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  std::shared_ptr<grpc::Channel> Connect() const { return Connect(certificate_); }
  std::shared_ptr<grpc::Channel> Connect(const SelfSigned& trusted) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = trusted.certificate;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_->port()),
                                     grpc::SslCredentials(options), arguments);
  }

  Answer Call(const std::string& token, size_t bytes,
              std::pair<std::string, std::string> header = {}) const {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    context.set_compression_algorithm(compression_);
    if (!token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    if (!header.first.empty()) context.AddMetadata(header.first, header.second);
    const grpc::Slice slice(std::string(bytes, 'x'));
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, "/test/Echo", grpc::StubOptions(), &request, &response,
                   [&](grpc::Status status) { ended.set_value(std::move(status)); });
    Answer answer;
    answer.status = ended.get_future().get();
    answer.bytes = response.Valid() ? response.Length() : 0;
    return answer;
  }

  const SelfSigned certificate_ = MakeSelfSigned();
  Said said_, from_;
  Echo echo_;
  grpc_compression_algorithm compression_ = GRPC_COMPRESS_NONE;
  std::unique_ptr<net::PublicPort> port_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(PublicPortTest, ServesCallsWithATokenAndKnowsWhereTheyComeFrom) {
  const Answer answer = Call("good", 5);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.bytes, 5u);
  EXPECT_THAT(from_.Wait(), StartsWith("127.0.0.1:"));
}

TEST_F(PublicPortTest, RefusesCallsWithout) {
  EXPECT_EQ(Call("", 5).status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call("bad", 5).status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(PublicPortTest, TellsAnUnauthenticatedPeerWhichCallWasTheLast) {
  for (int i = 1; i < net::kUnauthenticatedCalls; ++i) {
    EXPECT_EQ(Call("bad", 5).status.error_message(), "no token") << i;
  }
  EXPECT_EQ(
      Call("bad", 5).status.error_message(),
      "no token; this was the last of 8 calls that a connection may make without a valid token. "
      "Connect again");
}

TEST_F(PublicPortTest, KeepsAConnectionWithOneAcceptedCallDespiteRefusedOnes) {
  EXPECT_TRUE(Call("good", 5).status.ok());
  for (int i = 0; i < 3 * net::kUnauthenticatedCalls; ++i) {
    EXPECT_EQ(Call("bad", 5).status.error_message(), "no token") << i;
  }
}

// The ninth call of an unauthenticated peer would wait.
TEST_F(PublicPortTest, AnswersEveryCallOfAKnownUserWhoseRoleIsTooSmall) {
  for (int i = 0; i < 3 * net::kUnauthenticatedCalls; ++i) {
    const grpc::Status status = Call("weak", 5).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << i;
    EXPECT_EQ(status.error_message(), "the role is too small") << i;
  }
}

TEST_F(PublicPortTest, ServesUsersWhoShareAConnection) {
  for (const char* token : {"good", "better", "good", "better"}) {
    EXPECT_TRUE(Call(token, 5).status.ok()) << token;
  }
}

// Far more than an unauthenticated peer may send, in the first call of a connection.
TEST_F(PublicPortTest, TakesTheLargestRequestOfANewConnection) {
  const Answer answer = Call("good", lookup::kMaxRequestBytes - 1);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.bytes, static_cast<size_t>(lookup::kMaxRequestBytes - 1));
}

TEST_F(PublicPortTest, RefusesMessagesThatAreCompressed) {
  compression_ = GRPC_COMPRESS_GZIP;
  EXPECT_EQ(Call("good", 100'000).status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(PublicPortTest, ServesACallThatNamesAnotherConnection) {
  const Answer answer = Call("good", 5, {std::string(net::kConnectionHeader), "somebody's"});
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(from_.Wait(), StartsWith("127.0.0.1:"));
}

TEST_F(PublicPortTest, ServesMoreCallsAtOnceThanAnUnauthenticatedPeerMayBegin) {
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 50; ++i) {
    answers.push_back(std::async(std::launch::async, [this] { return Call("good", 100'000); }));
  }
  for (std::future<Answer>& each : answers) EXPECT_TRUE(each.get().status.ok());
}

TEST_F(PublicPortTest, SaysWhomItHungUpOn) {
  const auto plain = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_->port()),
                                         grpc::InsecureChannelCredentials());
  plain->GetState(true);
  const std::string said = said_.Wait();
  EXPECT_THAT(said, StartsWith("hung up on 1 connections, the last from 127.0.0.1:"));
  EXPECT_THAT(said, EndsWith(": TLS protocol error"));
}

TEST_F(PublicPortTest, ServesWhoConnectsFromNowOnWithANewCertificate) {
  ASSERT_TRUE(Call("good", 5).status.ok());
  const SelfSigned renewed = MakeSelfSigned();
  EXPECT_TRUE(port_->UseCertificate(renewed.certificate, renewed.private_key).ok());
  EXPECT_TRUE(Call("good", 5).status.ok()) << "who was here stays";
  const std::shared_ptr<grpc::Channel> here = std::exchange(channel_, Connect(renewed));
  EXPECT_TRUE(Call("good", 5).status.ok());
  channel_ = Connect();
  EXPECT_EQ(Call("good", 5).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(port_->UseCertificate(certificate_.certificate, renewed.private_key).code(),
            absl::StatusCode::kInvalidArgument);
  channel_ = Connect(renewed);
  EXPECT_TRUE(Call("good", 5).status.ok()) << "what can't be used changes nothing";
}

TEST_F(PublicPortTest, AcceptsNobodyNewOnceItStops) {
  ASSERT_TRUE(Call("good", 5).status.ok());
  port_->StopAccepting();
  EXPECT_TRUE(Call("good", 5).status.ok());
}

TEST(PublicPortListenTest, RefusesACertificateThatCannotBe) {
  const SelfSigned one = MakeSelfSigned();
  const SelfSigned other = MakeSelfSigned();
  const auto listen = [](const std::string& certificate, const std::string& key) {
    return net::PublicPort::Listen({"127.0.0.1:0", certificate, key, nullptr, nullptr}).status();
  };
  EXPECT_EQ(listen("nothing", one.private_key).message(),
            "the server's certificate can't be read as PEM");
  EXPECT_EQ(listen(one.certificate, other.private_key).message(),
            "the server's private key can't be read as PEM, or belongs to another certificate");
}

}  // namespace
}  // namespace ablate::rpc
