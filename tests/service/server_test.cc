// Tests the server as a whole: health, reflection, sockets, its end.
#include "server/service/server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "grpc/health/v1/health.pb.h"
#include "tests/service/raw_call.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;

class ServerTest : public ServiceTest {
 protected:
  // Starts a second server on the same store, on sockets of its own.
  absl::StatusOr<std::unique_ptr<Server>> StartOn(const std::string& client,
                                                  const std::string& worker) {
    return Server::Start({client, worker, "ada"}, &store(), scheduler());
  }
  std::string Address(const std::string& name) {
    return absl::StrCat("unix:", folder(), "/", name);
  }
};

TEST_F(ServerTest, SaysThatItServes) {
  for (const auto& channel : {channel_, worker_channel_}) {
    const RawAnswer answer = RawCall(channel, "/grpc.health.v1.Health/Check", {""});
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    grpc::health::v1::HealthCheckResponse response;
    ASSERT_EQ(answer.messages.size(), 1u);
    ASSERT_TRUE(response.ParseFromString(answer.messages[0]));
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  }
}

TEST_F(ServerTest, DescribesItself) {
  const std::string method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  // Field 7 lists services, field 4 asks for the file that has a symbol.
  const RawAnswer list = RawCall(channel_, method, {"\x3a\x01*"});
  ASSERT_EQ(list.messages.size(), 1u);
  for (const char* service :
       {"ablate.v1.Experiments", "ablate.v1.Runs", "ablate.v1.Metrics", "ablate.v1.Datasets",
        "ablate.v1.Artifacts", "ablate.v1.Reports", "ablate.v1.Workers", "grpc.health.v1.Health"}) {
    EXPECT_THAT(list.messages[0], HasSubstr(service));
  }
  EXPECT_THAT(list.messages[0], testing::Not(HasSubstr("WorkerChannel")));
  for (const std::string& symbol :
       {std::string("grpc.health.v1.Health"), std::string("ablate.v1.Experiments")}) {
    const RawAnswer file =
        RawCall(channel_, method,
                {absl::StrCat("\x22", std::string(1, static_cast<char>(symbol.size())), symbol)});
    ASSERT_EQ(file.messages.size(), 1u);
    EXPECT_THAT(file.messages[0], HasSubstr(".proto")) << symbol;
  }
}

// Returns this release's version with another minor one.
std::string Release(int minor_releases_later) {
  const std::vector<std::string> parts = absl::StrSplit(ABLATE_VERSION, '.');
  return absl::StrCat(parts[0], ".", std::stoi(parts[1]) + minor_releases_later, ".0");
}

TEST_F(ServerTest, AnswersProgramsOfTheNextReleasesOnly) {
  for (const int later : {-2, -1, 0, 1, 2}) {
    const bool works = std::abs(later) <= 1;
    const auto expected = works ? grpc::StatusCode::OK : grpc::StatusCode::FAILED_PRECONDITION;
    Context context;
    context.AddMetadata("ablate-release", Release(later));
    v1::ListWorkersResponse workers;
    const grpc::Status listed = workers_->ListWorkers(&context, {}, &workers);
    EXPECT_EQ(listed.error_code(), expected) << later << ": " << listed.error_message();
    EXPECT_EQ(ReasonOf(listed), works ? "" : "RELEASES_DIFFER");
    Context attaching;
    attaching.AddMetadata("ablate-release", Release(later));
    auto stub = worker::v1::WorkerChannel::NewStub(worker_channel_);
    auto stream = stub->Attach(&attaching);
    worker::v1::FromWorker hello;
    hello.mutable_hello()->set_worker(absl::StrCat("w", later + 2));
    hello.mutable_hello()->set_incarnation("one");
    hello.mutable_hello()->set_device_kind("cpu");
    hello.mutable_hello()->set_lanes(1);
    stream->Write(hello);
    worker::v1::ToWorker answer;
    EXPECT_EQ(stream->Read(&answer) && answer.has_welcome(), works) << later;
    if (works) attaching.TryCancel();
    const grpc::Status ended = stream->Finish();
    EXPECT_EQ(ended.error_code() == expected, !works) << ended.error_message();
  }
}

TEST_F(ServerTest, HidesTheWorkersChannelFromClients) {
  EXPECT_EQ(RawCall(channel_, "/ablate.worker.v1.WorkerChannel/ReadBlob", {""}).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(
      RawCall(worker_channel_, "/ablate.v1.Experiments/ListExperiments", {""}).status.error_code(),
      grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, RemovesASocketThatACrashLeft) {
  const std::string path = absl::StrCat(folder(), "/old");
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(left);
  ASSERT_TRUE(std::filesystem::is_socket(path));
  const auto server = StartOn(absl::StrCat("unix:", path), Address("old-worker"));
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel =
      grpc::CreateChannel(absl::StrCat("unix:", path), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(RawCall(channel, "/ablate.v1.Experiments/ListExperiments", {""}).status.ok());
}

TEST_F(ServerTest, NeverRemovesAFile) {
  const std::string path = absl::StrCat(folder(), "/precious");
  std::ofstream(path) << "data";
  const auto server = StartOn(absl::StrCat("unix:", path), Address("other"));
  EXPECT_TRUE(absl::IsFailedPrecondition(server.status()));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ServerTest, RefusesAddressesThatCannotBe) {
  for (const std::string& address :
       {std::string(), std::string("unix:"), std::string("localhost:0"),
        "unix:/" + std::string(107, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(StartOn(address, Address("other")).status())) << address;
  }
  EXPECT_TRUE(absl::IsUnavailable(
      StartOn(absl::StrCat("unix:", folder(), "/no/such/folder"), Address("other")).status()));
}

TEST_F(ServerTest, StopsClientsWhileWorkersGoOn) {
  const auto worker = MakeWorker();
  Create(SmallSpec());
  const FakeWorker::Leased run = worker->NextRun();
  StopClients();
  EXPECT_EQ(StatusOf(*experiments_, &v1::Experiments::Stub::ListExperiments, {}).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  worker->Started(run);
  worker->Points(run, {{"a", {0}, {1}}}, 1);
  worker->Settle();
}

TEST_F(ServerTest, LetsExperimentsInTheMakingBeMadeBeforeItStops) {
  std::promise<void> entered, answered;
  std::atomic<int> writes = 0;
  storage::StoreOptions
      options;  // in memory, in which creating an experiment writes on the caller's thread
  options.now = [&] {
    // Holds the first, until the client has its answer or some time has passed.
    if (++writes == 1) {
      entered.set_value();
      answered.get_future().wait_for(std::chrono::milliseconds(100));
    }
    return storage::Micros{1};
  };
  const auto slow = *storage::Store::Open(std::move(options));
  const auto server =
      Server::Start({Address("slow"), Address("slow-worker"), "ada"}, slow.get(), scheduler());
  ASSERT_TRUE(server.ok()) << server.status();
  grpc::Status status;
  std::thread client([&] {
    Context context;
    v1::CreateExperimentRequest request;
    request.set_request_id("one");
    *request.mutable_spec() = SmallSpec();
    v1::CreateExperimentResponse response;
    status = v1::Experiments::NewStub(
                 grpc::CreateChannel(Address("slow"), grpc::InsecureChannelCredentials()))
                 ->CreateExperiment(&context, request, &response);
    answered.set_value();
  });
  entered.get_future().wait();
  (*server)->StopClients();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// A watcher reconnects on its present connection, long before it reads there that the server ends.
TEST_F(ServerTest, TellsWatchersThatComeBackThatItEnds) {
  v1::WatchExperimentRequest request;
  request.set_name(Create(SmallSpec()).experiment().name());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Checkpoint(run, 5, std::string(8 << 20, 'x'));
  worker->Settle();
  // Their clients don't read on, so the server can't end the streams that it is writing to: at any
  // moment it may be between two chunks of one, but not of all. Their windows hold less than a
  // chunk.
  grpc::ChannelArguments narrow;
  narrow.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  narrow.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1024);
  narrow.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto artifacts = v1::Artifacts::NewStub(
      grpc::CreateCustomChannel(Address("c"), grpc::InsecureChannelCredentials(), narrow));
  struct Idle {
    Context context;
    std::unique_ptr<grpc::ClientReader<v1::ArtifactChunk>> reader;
  };
  std::vector<Idle> idle(6);
  v1::ReadArtifactRequest read;
  read.set_name(absl::StrCat("runs/", run.run.run(), "/checkpoints/5"));
  v1::ArtifactChunk chunk;
  for (Idle& each : idle) {
    each.reader = artifacts->ReadArtifact(&each.context, read);
    ASSERT_TRUE(each.reader->Read(&chunk));
  }
  struct Watcher {
    Context context, again;
    std::unique_ptr<v1::Experiments::Stub> stub;
    std::unique_ptr<grpc::ClientReader<v1::ExperimentEvent>> reader;
  };
  std::vector<Watcher> watchers(8);
  v1::ExperimentEvent event;
  for (Watcher& watcher : watchers) {
    grpc::ChannelArguments alone;
    alone.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    watcher.stub = v1::Experiments::NewStub(
        grpc::CreateCustomChannel(Address("c"), grpc::InsecureChannelCredentials(), alone));
    watcher.reader = watcher.stub->WatchExperiment(&watcher.context, request);
    ASSERT_TRUE(watcher.reader->Read(&event));
  }
  std::thread stopping([this] { StopClients(); });
  for (Watcher& watcher : watchers) {
    while (watcher.reader->Read(&event)) {
    }
    EXPECT_EQ(watcher.reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    const auto again = watcher.stub->WatchExperiment(&watcher.again, request);
    while (again->Read(&event)) {
    }
    EXPECT_EQ(again->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  for (Idle& each : idle) each.context.TryCancel();
  stopping.join();
}

TEST_F(ServerTest, AnswersManyCallsAtOnce) {
  const std::string name = Create(SmallSpec()).experiment().name();
  std::vector<std::thread> clients;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([this, &name, &answered] {
      for (int call = 0; call < 20; ++call) {
        answered += Get(name).name() == name ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 320);
}

TEST_F(ServerTest, GivesUpOnCallsWhoseDeadlineHasPassed) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  v1::ListExperimentsResponse response;
  EXPECT_EQ(experiments_->ListExperiments(&context, {}, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace ablate::service
