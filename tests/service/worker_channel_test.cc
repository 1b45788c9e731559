// Tests the workers' side: the long stream, blobs under a lease, workers as clients see them.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/blobs.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

class WorkerChannelTest : public ServiceTest {
 protected:
  // Looks at the file: asking the store would bring it back from the trash.
  bool HasBlob(const std::string& sha256) {
    return std::filesystem::exists(store().folder() + "/blobs/" + sha256);
  }
};

TEST_F(WorkerChannelTest, ShowsWorkersToClients) {
  EXPECT_TRUE(Workers().empty());
  auto worker = MakeWorker("cpu-train", 2);
  std::vector<v1::Worker> workers = Workers();
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].name(), "workers/cpu-train");
  EXPECT_EQ(workers[0].device(), "an abacus, 2 lanes");
  EXPECT_EQ(workers[0].lanes(), 2u);
  EXPECT_EQ(workers[0].build(), "test");
  EXPECT_EQ(workers[0].state(), v1::WorkerState::IDLE);
  EXPECT_TRUE(workers[0].has_attach_time());
  const v1::CreateExperimentResponse created = Create(SmallSpec());
  worker->NextRun();
  worker->NextRun();
  workers = Workers();
  EXPECT_EQ(workers[0].state(), v1::WorkerState::BUSY);
  EXPECT_THAT(workers[0].runs(),
              testing::UnorderedElementsAre(created.cells(0).run(), created.cells(1).run()));
  worker.reset();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    workers = Workers();
  } while (workers[0].state() != v1::WorkerState::AWAY && std::chrono::steady_clock::now() < end);
  EXPECT_EQ(workers[0].state(), v1::WorkerState::AWAY);
  EXPECT_FALSE(workers[0].has_attach_time());
}

TEST_F(WorkerChannelTest, GrantsRunsAsSoonAsTheyAreQueued) {
  const auto worker = MakeWorker();
  const v1::CreateExperimentResponse created = Create(SmallSpec());
  const FakeWorker::Leased run = worker->NextRun();
  EXPECT_EQ("runs/" + run.run.run(), created.cells(0).run());
  EXPECT_EQ(run.lease.size(), 32u);
  EXPECT_EQ(run.run.spec().spec().training().steps(), 10u);
  EXPECT_EQ(run.run.resume_blob(), "");
}

TEST_F(WorkerChannelTest, ClosesAStreamThatDoesNotBeginWithHello) {
  const auto worker = MakeWorker();
  worker::v1::FromWorker message;
  message.mutable_hello()->set_worker("again");
  EXPECT_TRUE(worker->Send(message));
  EXPECT_EQ(worker->WaitForEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(WorkerChannelTest, ClosesAStreamWithAMalformedMessage) {
  const auto worker = MakeWorker();
  EXPECT_TRUE(worker->Send({}));
  EXPECT_EQ(worker->WaitForEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(WorkerChannelTest, ClosesTheOldStreamWhenItsWorkerComesBack) {
  const auto first = MakeWorker();
  const auto second = MakeWorker();
  EXPECT_EQ(first->WaitForEnd().error_code(), grpc::StatusCode::ABORTED);
  Create(SmallSpec());
  EXPECT_NE(second->NextRun().lease, "");
}

TEST_F(WorkerChannelTest, EndsStreamsWithUnavailableWhenTheServerEnds) {
  const auto worker = MakeWorker();
  StopServer();
  EXPECT_EQ(worker->WaitForEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(WorkerChannelTest, KeepsABlobUntilItsEventIsDurable) {
  Create(SmallSpec());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  const std::string sha256 = Sha256Hex("weights");
  ASSERT_TRUE(worker->WriteBlob(run.lease, sha256, {"wei", "ghts"}).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(HasBlob(sha256));  // no row names it, but it is pinned
  worker->Checkpoint(run, 5, "weights");
  worker->Settle();
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(HasBlob(sha256));
  EXPECT_EQ(Read("runs/" + run.run.run() + "/checkpoints/5"), "weights");
}

TEST_F(WorkerChannelTest, LetsGoOfBlobsOfLeasesThatEnded) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  const FakeWorker::Leased other = worker->NextRun();
  const std::string sha256 = Sha256Hex("weights");
  ASSERT_TRUE(worker->WriteBlob(run.lease, sha256, {"weights"}).ok());
  Cancel(name);
  worker->WaitForCancel(run);
  worker->WaitForCancel(other);
  // The next write notices that the lease has ended.
  Create(SmallSpec(1, "next"));
  const FakeWorker::Leased next = worker->NextRun();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    ASSERT_TRUE(worker->WriteBlob(next.lease, Sha256Hex("x"), {"x"}).ok());
    ASSERT_TRUE(store().Maintain().ok());
  } while (HasBlob(sha256) && std::chrono::steady_clock::now() < end);
  EXPECT_FALSE(HasBlob(sha256));
}

TEST_F(WorkerChannelTest, ListsWorkersPageByPage) {
  for (const char* name : {"c", "a", "e", "b", "d"}) MakeWorker(name);  // and away again
  std::vector<std::string> names;
  v1::ListWorkersRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    const auto page = AnswerOf(*workers_, &v1::Workers::Stub::ListWorkers, request);
    EXPECT_LE(page.workers_size(), 2);
    for (const v1::Worker& worker : page.workers()) names.push_back(worker.name());
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(
      names, testing::ElementsAre("workers/a", "workers/b", "workers/c", "workers/d", "workers/e"));
}

TEST_F(WorkerChannelTest, RefusesBlobsWithoutALease) {
  Create(SmallSpec());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  const std::string sha256 = Sha256Hex("weights");
  grpc::Status status = worker->WriteBlob("0123", sha256, {"weights"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "LEASE_NOT_FOUND");
  std::string bytes;
  status = worker->ReadBlob("0123", sha256, &bytes);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "LEASE_NOT_FOUND");
  status = worker->ReadBlob(run.lease, sha256, &bytes);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << "not its grant's";
  EXPECT_FALSE(HasBlob(sha256));
}

TEST_F(WorkerChannelTest, RefusesMalformedAndWrongHashes) {
  Create(SmallSpec());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  std::string bytes;
  for (const std::string& sha256 :
       {std::string(), std::string("../../etc/passwd"), std::string(64, 'G')}) {
    EXPECT_EQ(FieldOf(worker->WriteBlob(run.lease, sha256, {"x"})), "sha256");
    EXPECT_EQ(FieldOf(worker->ReadBlob(run.lease, sha256, &bytes)), "sha256");
  }
  const grpc::Status status = worker->WriteBlob(run.lease, Sha256Hex("a"), {"b"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(HasBlob(Sha256Hex("a")));
  EXPECT_FALSE(HasBlob(Sha256Hex("b")));
}

TEST_F(WorkerChannelTest, StoresManyFlushesWithoutWaitingForEach) {
  constexpr uint32_t kFlushes = 20;
  constexpr uint32_t kSteps = 500;
  Create(SmallSpec(1, "small", kFlushes * kSteps));
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  for (uint32_t flush = 0; flush < kFlushes; ++flush) {
    std::vector<uint32_t> steps(kSteps);
    for (uint32_t i = 0; i < kSteps; ++i) steps[i] = flush * kSteps + i;
    std::vector<FakeWorker::Series> series;
    for (int key = 0; key < 10; ++key) {
      series.push_back({absl::StrCat("k", key), steps, std::vector<double>(kSteps, .5)});
    }
    worker->Points(run, series, (flush + 1) * kSteps);
  }
  worker->Settle();
  const v1::ListMetricsResponse response = ListMetrics("runs/" + run.run.run());
  ASSERT_EQ(response.metrics_size(), 10);
  for (const v1::MetricInfo& metric : response.metrics()) {
    EXPECT_EQ(metric.count(), kFlushes * kSteps);
  }
}

}  // namespace
}  // namespace ablate::service
