// A full disk, as clients see it: why nothing goes on, and that it goes on again.
#include "tests/service/service_fixture.h"
#include "tests/storage/failing_disk.h"

namespace ablate::service {
namespace {

// Before the store, which is to be on it.
struct OnFailingDisk {
  storage::FailingDisk disk_;
};

class StallTest : public OnFailingDisk, public ServiceTest {
 protected:
  v1::Run GetRun(const std::string& run) {
    Context context;
    v1::GetRunRequest request;
    request.set_name(run);
    v1::Run response;
    EXPECT_TRUE(runs_->GetRun(&context, request, &response).ok());
    return response;
  }
  // What `workers` says of the only worker.
  std::string StallOfWorker() {
    Context context;
    v1::ListWorkersResponse response;
    EXPECT_TRUE(workers_->ListWorkers(&context, {}, &response).ok());
    return response.workers_size() == 1 ? response.workers(0).stalled() : "not one worker";
  }
};

TEST_F(StallTest, SaysThatTheDiskIsFullUntilThereIsRoom) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Settle();
  EXPECT_EQ(Get(name).stalled(), "");
  Context context;
  v1::WatchExperimentRequest request;
  request.set_name(name);
  const auto watch = experiments_->WatchExperiment(&context, request);
  v1::ExperimentEvent event;
  disk_.room = 0;
  worker->Points(run, {{"train/loss", {0}, {1}}}, 1);
  do {
    ASSERT_TRUE(watch->Read(&event));
  } while (event.stalled().empty());
  EXPECT_EQ(event.stalled(), "disk full");
  EXPECT_EQ(event.counts().running() + event.counts().queued(), 2u);
  EXPECT_FALSE(event.token().empty());
  EXPECT_EQ(Get(name).stalled(), "disk full");
  EXPECT_EQ(GetRun("runs/" + run.run.run()).stalled(), "disk full");
  EXPECT_EQ(StallOfWorker(), "disk full");
  disk_.room = INT64_MAX;
  while (!event.stalled().empty()) ASSERT_TRUE(watch->Read(&event));
  worker->Settle();
  EXPECT_EQ(Get(name).stalled(), "");
  EXPECT_EQ(StallOfWorker(), "");
  EXPECT_EQ(GetRun("runs/" + run.run.run()).step(), 1u);
}

}  // namespace
}  // namespace ablate::service
