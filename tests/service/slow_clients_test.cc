// Clients that hold a place and do little with it, and workers beside them.
#include <chrono>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/sha256.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;

class SlowClientsTest : public ServiceTest {
 protected:
  // An upload that sends one byte after another until the server has had enough.
  grpc::Status Trickle() {
    Context context;
    v1::Dataset dataset;
    const auto writer = datasets_->UploadDataset(&context, &dataset);
    v1::UploadDatasetRequest message;
    message.set_display_name("names.txt");
    message.set_sha256(storage::Sha256Hex("never"));
    while (writer->Write(message)) {
      message.Clear();
      message.set_data("a");
    }
    return writer->Finish();
  }
};

TEST_F(SlowClientsTest, LoseTheirPlaceWhenAnUploadTrickles) {
  pace_ = {absl::Milliseconds(50), 1e9};
  Restart();
  const grpc::Status status = Trickle();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("too little comes: the client must send "));
}

TEST_F(SlowClientsTest, MayWatchAnIdleExperimentForEver) {
  pace_ = {absl::Milliseconds(500), 1e9};
  Restart();
  const std::string name = Create(SmallSpec()).experiment().name();
  Context context;
  v1::WatchExperimentRequest request;
  request.set_name(name);
  const auto watch = experiments_->WatchExperiment(&context, request);
  v1::ExperimentEvent event;
  for (int cell = 0; cell < 2; ++cell) ASSERT_TRUE(watch->Read(&event));
  // Meanwhile a client that begins later is found to be too slow.
  EXPECT_THAT(Trickle().error_message(), HasSubstr("too little comes"));
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  EXPECT_TRUE(watch->Read(&event)) << watch->Finish().error_message();
  EXPECT_EQ(event.state(), v1::RunState::RUNNING);
}

TEST_F(SlowClientsTest, LeaveThreadsToWorkers) {
  Create(SmallSpec());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  // Calls that wait for the scheduler, which stands still: more than there are threads for clients.
  std::promise<void> gate;
  scheduler()->Post([open = gate.get_future().share()](schedule::Scheduler&) { open.wait(); });
  std::vector<std::thread> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([this] {
      Context context;
      v1::ListWorkersResponse response;
      EXPECT_TRUE(workers_->ListWorkers(&context, {}, &response).ok());
    });
  }
  grpc::Status status;
  do {  // until none is left
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    v1::ListExperimentsResponse response;
    status = experiments_->ListExperiments(&context, {}, &response);
  } while (status.ok());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);

  auto written = std::async(std::launch::async, [&worker, &run] {
    return worker->WriteBlob(run.lease, storage::Sha256Hex("weights"), {"weights"});
  });
  EXPECT_EQ(written.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  gate.set_value();
  EXPECT_TRUE(written.get().ok());
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace ablate::service
