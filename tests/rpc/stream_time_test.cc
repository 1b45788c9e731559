// Tests the time limit of a user's streams.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/live_streams.h"

namespace ablate::rpc {
namespace {

// Holds every call that comes.
class Holding final : public grpc::CallbackGenericService {
 public:
  explicit Holding(LiveStreams* streams) : streams_(streams) {}
  std::future<void> held() { return held_.get_future(); }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor, public LiveStream {
   public:
    explicit Reactor(LiveStreams* streams) : streams_(streams) {}
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override {
      streams_->Remove(this);
      delete this;
    }
    void Stop() override {}

   private:
    LiveStreams* const streams_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    auto* reactor = new Reactor(streams_);
    EXPECT_TRUE(streams_->Add(reactor, context).ok());
    held_.set_value();
    return reactor;
  }

  LiveStreams* const streams_;
  std::promise<void> held_;
};

// Returns how a call of a user ends whose streams may take an hour, after one and a half.
grpc::Status EndAfterItsTime(const std::string& user) {
  std::string folder = "/tmp/ablate-live-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  const std::string address = absl::StrCat("unix:", folder, "/socket");
  LiveStreams streams("downloads", 4, absl::Hours(1));
  streams.set_find_caller([user](const grpc::ServerContextBase&) {
    return storage::Caller{user, storage::Role::kMember, ""};
  });
  Holding holding(&streams);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&holding);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const grpc::Slice slice("x");
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, "/test/Hold", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  holding.held().wait();
  streams.CheckPaces(absl::Seconds(100));
  streams.CheckPaces(absl::Seconds(100) + absl::Minutes(60));
  auto end = ended.get_future();
  EXPECT_EQ(end.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "too early";
  streams.CheckPaces(absl::Seconds(100) + absl::Minutes(90));
  if (user.empty()) context.TryCancel();
  grpc::Status status = end.get();
  server->Shutdown();
  std::filesystem::remove_all(folder);
  return status;
}

TEST(StreamTimeTest, EndsAUsersStreamAfterItsTime) {
  const grpc::Status end = EndAfterItsTime("ada");
  EXPECT_EQ(end.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(end.error_message(),
            "downloads: longer than 1h, the limit of a user's call on a shared server. Call again "
            "to continue");
}

TEST(StreamTimeTest, LetsNobodysStreamTakeForEver) {
  EXPECT_EQ(EndAfterItsTime("").error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace ablate::rpc
