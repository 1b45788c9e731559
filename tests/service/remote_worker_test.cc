// Tests workers on other machines: what a token of role worker allows, and false reports.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::HasSubstr;

class RemoteWorkerTest : public SharingTest {
 protected:
  std::unique_ptr<FakeWorker> WorkerOf(const std::string& user,
                                       const std::string& name = "cpu-train") {
    return std::make_unique<FakeWorker>(ChannelAs(SecretOf(user, Role::kWorker)), name, 2);
  }
  std::vector<std::string> WorkerNames() {
    std::vector<std::string> names;
    for (const v1::Worker& worker : Workers()) names.push_back(worker.name());
    return names;
  }
};

TEST_F(RemoteWorkerTest, TrainsAndIsCalledByItsUser) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto worker = WorkerOf("gpu2");
  EXPECT_THAT(WorkerNames(), testing::ElementsAre("workers/cpu-train@gpu2"));
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Points(run, {{"train/loss", {0, 1}, {3.0, 2.0}}}, 2);
  worker->Checkpoint(run, 10, "weights");
  worker->Finished(run, 10);
  worker->Settle();
  EXPECT_EQ(Get(name).counts().done(), 1u);
  EXPECT_EQ(Read("runs/" + run.run.run() + "/checkpoints/10"), "weights");
}

TEST_F(RemoteWorkerTest, TakesNobodysPlaceByNamingItselfLikeThem) {
  const auto local = MakeWorker("cpu-train");
  const auto worker = WorkerOf("gpu2", "cpu-train");
  const auto liar = WorkerOf("gpu3", "cpu-train");
  const auto worse = WorkerOf("gpu3", "cpu-train@gpu2");
  EXPECT_THAT(WorkerNames(), testing::UnorderedElementsAre(
                                 "workers/cpu-train", "workers/cpu-train@gpu2",
                                 "workers/cpu-train@gpu3", "workers/cpu-train@gpu2@gpu3"));
  Create(SmallSpec(1));
  // All are still attached: the one with the least work gets it.
  std::vector<FakeWorker*> all = {local.get(), worker.get(), liar.get(), worse.get()};
  worker::v1::FromWorker heartbeat;
  heartbeat.mutable_heartbeat();
  for (FakeWorker* each : all) EXPECT_TRUE(each->Send(heartbeat));
}

// It reports truthfully about a lease that it has learnt of, except for whose it is.
TEST_F(RemoteWorkerTest, CantTakeOrSpeakForALeaseOfAnother) {
  const std::string name = Create(SmallSpec(1)).experiment().name();
  const auto worker = WorkerOf("gpu2");
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Settle();
  const auto liar = WorkerOf("gpu3");  // its incarnation is called the same
  worker::v1::FromWorker message;
  worker::v1::Event* event = message.mutable_event();
  event->set_lease(run.lease);
  event->set_seq(2);
  event->mutable_failed()->set_message("it lies");
  EXPECT_TRUE(liar->Send(message));
  const std::string sha256 = Sha256Hex("theirs");
  const grpc::Status written = liar->WriteBlob(run.lease, sha256, {"theirs"});
  EXPECT_EQ(written.error_code(), grpc::StatusCode::NOT_FOUND) << written.error_message();
  worker->Finished(run, 10);
  worker->Settle();
  EXPECT_EQ(Get(name).counts().done(), 1u) << "what the liar sent did nothing";
}

TEST_F(RemoteWorkerTest, ReadsTheBlobsOfItsLeasesAlone) {
  const v1::Dataset names = Upload("names.txt", "anna\nbob\ncarl\ndora\n");
  const v1::Dataset other = Upload("other.txt", "secret\nthings\n");
  Create(DocumentsSpec(names.display_name()));
  const auto worker = WorkerOf("gpu2"), liar = WorkerOf("gpu3");
  FakeWorker* holder = worker.get();
  const FakeWorker::Leased run = holder->NextRun();
  std::string bytes;
  EXPECT_TRUE(holder->ReadBlob(run.lease, run.run.dataset_blob(), &bytes).ok());
  EXPECT_EQ(bytes, "anna\nbob\ncarl\ndora\n");
  const grpc::Status others = holder->ReadBlob(run.lease, other.sha256(), &bytes);
  EXPECT_EQ(others.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(others.error_message(), HasSubstr("may not read blob"));
  EXPECT_EQ(liar->ReadBlob(run.lease, run.run.dataset_blob(), &bytes).error_code(),
            grpc::StatusCode::NOT_FOUND);
  holder->Started(run);
  holder->Finished(run, run.run.spec().spec().training().steps());
  holder->Settle();
  EXPECT_EQ(holder->ReadBlob(run.lease, run.run.dataset_blob(), &bytes).error_code(),
            grpc::StatusCode::NOT_FOUND)
      << "after its end";
}

// Otherwise it would have a checkpoint of the run that everybody may read.
TEST_F(RemoteWorkerTest, NamesOnlyBlobsThatItWroteUnderTheLease) {
  const v1::Dataset other = Upload("other.txt", "secret\nthings\n");
  Create(SmallSpec(1));
  const auto worker = WorkerOf("gpu2");
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Settle();
  worker::v1::FromWorker message;
  worker::v1::Event* event = message.mutable_event();
  event->set_lease(run.lease);
  event->set_seq(2);
  event->mutable_checkpoint()->set_step(10);
  event->mutable_checkpoint()->set_blob(other.sha256());
  event->mutable_checkpoint()->set_bytes(3);
  EXPECT_TRUE(worker->Send(message));
  // Its lease is lost, and the run is granted again by another.
  FakeWorker::Leased again = worker->NextRun();
  while (!again.lease.empty() && again.run.run() != run.run.run()) again = worker->NextRun();
  EXPECT_NE(again.lease, run.lease);
  EXPECT_EQ(again.run.run(), run.run.run());
  Context context;
  v1::ReadArtifactRequest request;
  request.set_name("runs/" + run.run.run() + "/checkpoints/10");
  v1::ArtifactChunk chunk;
  const auto reader = artifacts_->ReadArtifact(&context, request);
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RemoteWorkerTest, IsNotToldWhetherABlobIsThere) {
  const v1::Dataset other = Upload("other.txt", "secret\nthings\n");
  Create(SmallSpec(1));
  const auto worker = WorkerOf("gpu2");
  const FakeWorker::Leased run = worker->NextRun();
  const grpc::Status guessed = worker->WriteBlob(run.lease, other.sha256(), {"a guess"});
  EXPECT_EQ(guessed.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << guessed.error_message();
}

TEST_F(RemoteWorkerTest, WritesNoMoreThanItsBudgetAheadOfItsEvents) {
  Create(SmallSpec(1));
  const auto worker = WorkerOf("gpu2");
  const FakeWorker::Leased run = worker->NextRun();
  const std::vector<std::string> chunks(300, std::string(1 << 20, 'x'));
  const grpc::Status status = worker->WriteBlob(run.lease, std::string(64, '0'), chunks);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("written bytes without a durable event"));
  const std::string weights = Sha256Hex("weights");
  EXPECT_TRUE(worker->WriteBlob(run.lease, weights, {"weights"}).ok()) << "given back";
}

TEST_F(RemoteWorkerTest, EndsWithItsToken) {
  Create(SmallSpec(1));
  const storage::IssuedToken token = Join("gpu2", Role::kWorker);
  FakeWorker worker(ChannelAs(token.secret), "cpu-train", 1);
  const FakeWorker::Leased run = worker.NextRun();
  ASSERT_TRUE(sharing().store().RevokeToken(token.token.id, kRoot, absl::Now()).ok());
  const grpc::Status end = worker.WaitForEnd();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(end.error_message(),
            "the token was revoked, or its user's role has changed. Log in again");
  EXPECT_EQ(worker.WriteBlob(run.lease, Sha256Hex("x"), {"x"}).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(RemoteWorkerTest, SaysNothingThatATerminalWouldObey) {
  FakeWorker fine(ChannelAs(SecretOf("gpu2", Role::kWorker)), "cpu", 1);
  auto stub = worker::v1::WorkerChannel::NewStub(ChannelAs(SecretOf("gpu3", Role::kWorker)));
  Context context;
  const auto stream = stub->Attach(&context);
  worker::v1::FromWorker message;
  message.mutable_hello()->set_worker("cpu\x1b[2J");
  message.mutable_hello()->set_incarnation("one");
  stream->Write(message);
  worker::v1::ToWorker answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(end.error_message(), HasSubstr("hello.worker is"));
}

}  // namespace
}  // namespace ablate::service
