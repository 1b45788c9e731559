// Tests the queue as clients see and change it, and the pilots of clusters over the wire.
#include <string>

#include "ablate/v1/queue.grpc.pb.h"
#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class QueueTest : public ServiceTest {
 protected:
  v1::ListQueueResponse List() {
    auto stub = v1::Queue::NewStub(channel_);
    return AnswerOf(*stub, &v1::Queue::Stub::ListQueue, v1::ListQueueRequest());
  }
  grpc::Status Update(const v1::UpdateExperimentRequest& request) {
    return StatusOf(*experiments_, &v1::Experiments::Stub::UpdateExperiment, request);
  }
  worker::v1::SyncPilotsRequest Pilots(const std::string& cluster, uint32_t pending) {
    worker::v1::SyncPilotsRequest request;
    request.set_cluster(cluster);
    request.set_device_kind("cpu");
    request.set_max(8);
    for (uint32_t i = 0; i < pending; ++i) {
      worker::v1::Pilot* pilot = request.add_pilots();
      pilot->set_worker(absl::StrCat(cluster, "-", i));
      pilot->set_pending(true);
      pilot->set_reason("Priority");
    }
    return request;
  }
  worker::v1::SyncPilotsResponse Sync(const worker::v1::SyncPilotsRequest& request) {
    auto stub = worker::v1::WorkerChannel::NewStub(worker_channel_);
    return AnswerOf(*stub, &worker::v1::WorkerChannel::Stub::SyncPilots, request);
  }
};

TEST_F(QueueTest, SaysWhyRunsWaitAndUpdatesIt) {
  EXPECT_THAT(List().experiments(), IsEmpty());
  const v1::Experiment made = Create(SmallSpec(3)).experiment();
  EXPECT_EQ(made.priority(), v1::Priority::normal);
  v1::ListQueueResponse list = List();
  ASSERT_EQ(list.experiments_size(), 1);
  const v1::QueuedExperiment& row = list.experiments(0);
  EXPECT_EQ(row.experiment(), made.name());
  EXPECT_EQ(row.title(), "small");
  EXPECT_EQ(row.queued(), 6u);
  EXPECT_EQ(row.running(), 0u);
  EXPECT_EQ(row.waits(), "no worker is attached");
  EXPECT_FALSE(row.has_latest());
  v1::UpdateExperimentRequest pause = Named<v1::UpdateExperimentRequest>(made.name());
  pause.set_paused(true);
  pause.set_priority(v1::Priority::background);
  EXPECT_TRUE(Update(pause).ok());
  list = List();
  EXPECT_TRUE(list.experiments(0).paused());
  EXPECT_EQ(list.experiments(0).priority(), v1::Priority::background);
  EXPECT_THAT(list.experiments(0).waits(), HasSubstr("paused"));
  const auto worker = MakeWorker();
  EXPECT_TRUE(Get(made.name()).paused());
  pause.set_paused(false);
  EXPECT_TRUE(Update(pause).ok());
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Settle();
  list = List();
  EXPECT_EQ(list.experiments(0).running(), 1u);
  EXPECT_TRUE(list.experiments(0).has_latest());
}

TEST_F(QueueTest, NamesAWrongChange) {
  const std::string name = Create(SmallSpec(1)).experiment().name();
  v1::UpdateExperimentRequest request = Named<v1::UpdateExperimentRequest>(name);
  request.set_priority(static_cast<v1::Priority::Value>(9));
  EXPECT_EQ(FieldOf(Update(request)), "priority");
  request.set_priority(v1::Priority::unspecified);
  EXPECT_EQ(FieldOf(Update(request)), "priority");
  request.clear_priority();
  request.set_move(static_cast<v1::QueueEnd::Value>(9));
  EXPECT_EQ(FieldOf(Update(request)), "move");
  request.set_move(v1::QueueEnd::first);
  EXPECT_TRUE(Update(request).ok());
}

TEST_F(QueueTest, AsksAClusterForPilotsAndShowsThem) {
  Create(SmallSpec(2));
  EXPECT_EQ(Sync(Pilots("slurm", 0)).start(), 4u);
  EXPECT_EQ(Sync(Pilots("slurm", 3)).start(), 1u);
  v1::ListWorkersResponse workers =
      AnswerOf(*workers_, &v1::Workers::Stub::ListWorkers, v1::ListWorkersRequest());
  ASSERT_EQ(workers.pending_pilots_size(), 3);
  EXPECT_EQ(workers.pending_pilots(0).worker(), "workers/slurm-0");
  EXPECT_EQ(workers.pending_pilots(0).cluster(), "slurm");
  EXPECT_EQ(workers.pending_pilots(0).reason(), "Priority");
  EXPECT_TRUE(workers.pending_pilots(0).has_since());
  EXPECT_EQ(List().experiments(0).waits(), "waits for the first of 3 pilots of slurm: Priority");
  auto stub = worker::v1::WorkerChannel::NewStub(worker_channel_);
  const grpc::Status refused =
      StatusOf(*stub, &worker::v1::WorkerChannel::Stub::SyncPilots, Pilots("a b", 0));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("cluster is \"a b\""));
}

}  // namespace
}  // namespace ablate::service
