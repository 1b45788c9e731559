// Tests a full disk, as clients see it: why nothing goes on, and that it goes on again.
#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"
#include "tests/storage/failing_disk.h"

namespace ablate::service {
namespace {

// Made before the store, which uses it.
struct OnFailingDisk {
  storage::FailingDisk disk_;
};

class StallTest : public OnFailingDisk, public ServiceTest {
 protected:
  // Returns the stall of the only worker in `workers`.
  std::string StallOfWorker() {
    const std::vector<v1::Worker> workers = Workers();
    return workers.size() == 1 ? workers[0].stalled() : "not one worker";
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

// If a blob finds the disk full, and then not any more, nothing is written to the database, so no
// commit tells the server. This store therefore reports no commit.
TEST_F(StallTest, TellsWatchersThatBlobsFindTheDiskFull) {
  storage::StoreOptions on_disk;
  on_disk.folder = absl::StrCat(folder(), "/stall-data");
  const auto store = *storage::Store::Open(std::move(on_disk));
  const auto add_dataset = [&](const std::string& text) {
    const auto upload = *store->blobs()->Create();
    EXPECT_TRUE(upload->Append(text).ok());
    const auto pin = *upload->Publish("");
    storage::DatasetRecord dataset;
    dataset.id = dataset.display_name = text;
    dataset.sha256 = pin->sha256();
    return store->AddDataset(dataset).status();
  };
  ServerOptions options{absl::StrCat("unix:", folder(), "/stall"),
                        absl::StrCat("unix:", folder(), "/stall-worker"), "ada"};
  options.pace.timeout = absl::Seconds(6);  // it looks ten times a second
  const auto server = Server::Start(options, store.get(), scheduler());
  ASSERT_TRUE(server.ok()) << server.status();
  const auto experiments = v1::Experiments::NewStub(
      grpc::CreateChannel(options.client_address, grpc::InsecureChannelCredentials()));
  Context create_context, context;
  v1::CreateExperimentRequest create;
  create.set_request_id("stall");
  *create.mutable_spec() = SmallSpec();
  v1::CreateExperimentResponse created;
  ASSERT_TRUE(experiments->CreateExperiment(&create_context, create, &created).ok());
  v1::WatchExperimentRequest request;
  request.set_name(created.experiment().name());
  const auto watch = experiments->WatchExperiment(&context, request);
  v1::ExperimentEvent event;
  for (int cell = 0; cell < 2; ++cell) ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.stalled(), "");
  disk_.room = 0;
  EXPECT_TRUE(absl::IsResourceExhausted(add_dataset("refused")));
  ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.stalled(), "disk full");
  disk_.room = INT64_MAX;
  EXPECT_TRUE(add_dataset("stored").ok());
  ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.stalled(), "");
}

}  // namespace
}  // namespace ablate::service
