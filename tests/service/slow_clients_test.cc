// Tests clients that hold a place and do little with it, and workers beside them.
#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;

class SlowClientsTest : public ServiceTest {
 protected:
  using Download = std::unique_ptr<grpc::ClientReader<v1::ArtifactChunk>>;

  // Returns the name of a checkpoint of `bytes`.
  std::string Checkpoint(size_t bytes) {
    const auto worker = MakeWorker();
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    const std::string data(bytes, static_cast<char>('a' + ++checkpoints_));
    std::vector<std::string> chunks;
    for (size_t at = 0; at < bytes; at += 1 << 20) chunks.push_back(data.substr(at, 1 << 20));
    EXPECT_TRUE(worker->WriteBlob(run.lease, Sha256Hex(data), chunks).ok());
    worker->Checkpoint(run, 5, data);
    worker->Settle();
    return absl::StrCat("runs/", run.run.run(), "/checkpoints/5");
  }

  Download Begin(Context* context, const std::string& name) {
    v1::ReadArtifactRequest request;
    request.set_name(name);
    return artifacts_->ReadArtifact(context, request);
  }
  // Makes later downloads those of a client that takes no more than 64 KiB in advance: on a socket
  // as fast as ours gRPC would increase that to megabytes.
  void TakeNothingInAdvance() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    artifacts_ = v1::Artifacts::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("unix:", folder(), "/c"), grpc::InsecureChannelCredentials(), arguments));
  }
  // Returns an experiment of which one run has 40,000 points.
  std::string LongExperiment() {
    std::string experiment = Create(SmallSpec(1, "small", 40'000)).experiment().name();
    const auto worker = MakeWorker();
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    FakeWorker::Series losses = {"train/loss", {}, {}};
    for (uint32_t step = 0; step < 40'000; ++step) {
      losses.steps.push_back(step);
      losses.values.push_back(1);
    }
    worker->Points(run, {losses}, 40'000);
    worker->Settle();
    return experiment;
  }
  // Reads a stream to the end, and returns the size of its largest message.
  template <typename Message>
  static size_t Largest(const std::unique_ptr<grpc::ClientReader<Message>>& reader) {
    size_t largest = 0;
    Message message;
    while (reader->Read(&message)) largest = std::max(largest, message.ByteSizeLong());
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return largest;
  }
  // Reads to the end.
  static grpc::Status End(const Download& download) {
    v1::ArtifactChunk chunk;
    while (download->Read(&chunk)) {
    }
    return download->Finish();
  }
  // Uploads one byte after another until the server ends the call.
  grpc::Status Trickle() {
    Context context;
    v1::Dataset dataset;
    const auto writer = datasets_->UploadDataset(&context, &dataset);
    v1::UploadDatasetRequest message;
    message.set_display_name("names.txt");
    message.set_sha256(Sha256Hex("never"));
    while (writer->Write(message)) {
      message.Clear();
      message.set_data("a");
    }
    return writer->Finish();
  }

 private:
  int checkpoints_ = 0;
};

TEST_F(SlowClientsTest, LoseTheirPlaceWhenTheyReadNothing) {
  Create(SmallSpec());
  const std::string name = Checkpoint(15 << 20);
  pace_ = {absl::Milliseconds(300), 1e9};
  Restart();
  TakeNothingInAdvance();
  Context context;
  const Download idle = Begin(&context, name);
  idle->WaitForInitialMetadata();
  // Meanwhile a client that begins later is found to be too slow.
  EXPECT_THAT(Trickle().error_message(), HasSubstr("the client sends too slowly"));
  const grpc::Status status = End(idle);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "the client reads the stream too slowly; expected at least 976562.5 KiB a second, with "
            "at most 300ms of delay");
}

TEST_F(SlowClientsTest, LoseTheirPlaceWhenAnUploadTrickles) {
  pace_ = {absl::Milliseconds(50), 1e9};
  Restart();
  const grpc::Status status = Trickle();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("the client sends too slowly; expected "));
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
  EXPECT_THAT(Trickle().error_message(), HasSubstr("the client sends too slowly"));
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  do {
    ASSERT_TRUE(watch->Read(&event)) << watch->Finish().error_message();
  } while (event.state() != v1::RunState::RUNNING);
}

TEST_F(SlowClientsTest, LeaveRoomForQueriesHoweverManyExportsAreNotRead) {
  const std::string experiment = LongExperiment();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  const auto reports = v1::Reports::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("unix:", folder(), "/c"), grpc::InsecureChannelCredentials(), arguments));
  v1::ExportRequest request;
  request.set_experiment(experiment);
  request.set_format(v1::ExportFormat::csv);
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::FileChunk>>> unread;
  for (size_t i = 0; i < lookup::kMaxReads.total; ++i) {
    contexts.push_back(std::make_unique<Context>());
    unread.push_back(reports->Export(contexts.back().get(), request));
    unread.back()->WaitForInitialMetadata();
  }
  Context context;
  const auto refused = reports_->Export(&context, request);
  EXPECT_THAT(refused->Finish().error_message(), HasSubstr("too many exports at once"));
  v1::QueryMetricsRequest query;
  query.set_experiment(experiment);
  query.add_keys("train/loss");
  query.set_max_points(10);
  EXPECT_EQ(Query(query).size(), 1u);
  for (const auto& each : contexts) each->TryCancel();
  for (const auto& each : unread) each->Finish();
}

// A client that takes none of a message is found to be too slow after the timeout only if the
// message takes no longer than that at the least rate.
TEST_F(SlowClientsTest, GetMessagesThatTakeLessThanTheTimeout) {
  const std::string experiment = LongExperiment();
  const auto may_have = static_cast<size_t>(lookup::kMinBytesPerSecond *
                                            absl::ToDoubleSeconds(lookup::kStreamTimeout));
  Context contexts[6];
  v1::ExportRequest exported;
  exported.set_experiment(experiment);
  exported.set_format(v1::ExportFormat::csv);
  EXPECT_LE(Largest(reports_->Export(&contexts[0], exported)), may_have);
  v1::QueryMetricsRequest query;
  query.set_experiment(experiment);
  query.add_keys("train/loss");
  EXPECT_LE(Largest(metrics_->QueryMetrics(&contexts[1], query)), may_have);
  v1::SqlRequest sql;
  sql.set_statement(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT i FROM "
      "n");
  EXPECT_LE(Largest(metrics_->Sql(&contexts[2], sql)), may_have);
  v1::RenderReportRequest report;
  report.add_experiments(experiment);
  EXPECT_LE(Largest(reports_->RenderReport(&contexts[3], report)), may_have);
  const std::string text(3 << 20, 'a');
  const auto named = Named<v1::DownloadDatasetRequest>(Upload("long.txt", text).name());
  EXPECT_LE(Largest(datasets_->DownloadDataset(&contexts[4], named)), may_have);
  const std::string checkpoint = Checkpoint(3 << 20);
  EXPECT_LE(Largest(Begin(&contexts[5], checkpoint)), may_have);
}

TEST_F(SlowClientsTest, LeaveThreadsToWorkers) {
  Create(SmallSpec());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  // Calls that wait for the stopped scheduler: more than there are threads for clients.
  std::promise<void> gate;
  scheduler()->Post([open = gate.get_future().share()](schedule::Scheduler&) { open.wait(); });
  std::vector<std::thread> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([this] { Workers(); });
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
    return worker->WriteBlob(run.lease, Sha256Hex("weights"), {"weights"});
  });
  EXPECT_EQ(written.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  gate.set_value();
  EXPECT_TRUE(written.get().ok());
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace ablate::service
