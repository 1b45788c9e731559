// Runs a whole server in this process: real store and scheduler in a temporary folder, real
// sockets, real clients.
#include "tests/service/service_fixture.h"

#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/sha256.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "storage/blobs.h"

namespace ablate::service {
namespace {

std::string NewFolder() {
  static std::atomic<int> folders = 0;
  const std::string folder = absl::StrCat(testing::TempDir(), "/s", getpid(), "-", ++folders);
  std::filesystem::remove_all(folder);
  return folder;
}

template <class Detail>
Detail DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  Detail detail;
  details.ParseFromString(status.error_details());
  for (const auto& any : details.details()) any.UnpackTo(&detail);
  return detail;
}

}  // namespace

void Commits::PassTo(Server* server) {
  MutexLock lock(&mutex_);
  server_ = server;
}

void Commits::operator()(uint64_t change) {
  MutexLock lock(&mutex_);
  if (server_ != nullptr) server_->Notify(change);
}

v1::ExperimentSpec SmallSpec(uint32_t seeds, const std::string& name, uint32_t steps) {
  v1::ExperimentSpec spec = SpecOf(R"(
    base {
      task { legacy_recall { keys: 20 draw: 4 } }
      model { layers: 1 width: 8 heads: 2 }
      training { batch: 2 }
    }
    axes {
      name: "placement"
      settings { label: "pre" }
      settings { label: "post" set { key: "model.norm.placement" value { string_value: "post" } } }
    }
  )");
  spec.set_name(name);
  spec.mutable_base()->mutable_training()->set_steps(steps);
  spec.mutable_seeds()->set_count(seeds);
  return spec;
}

v1::ExperimentSpec DocumentsSpec(const std::string& dataset, uint32_t context) {
  v1::ExperimentSpec spec = SpecOf(R"(
    name: "documents"
    base {
      task { documents { held_out: 1 } }
      model { layers: 1 width: 8 heads: 2 }
      training { steps: 10 batch: 2 }
    })");
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset(dataset);
  spec.mutable_base()->mutable_model()->set_context(context);
  return spec;
}

std::string FieldOf(const grpc::Status& status) {
  const auto request = DetailOf<google::rpc::BadRequest>(status);
  return request.field_violations().empty() ? "" : request.field_violations(0).field();
}

std::string ReasonOf(const grpc::Status& status) {
  return DetailOf<google::rpc::ErrorInfo>(status).reason();
}

ServiceTest::ServiceTest() : folder_(NewFolder()) { StartServer(); }

ServiceTest::~ServiceTest() {
  StopServer();
  std::filesystem::remove_all(folder_);
}

void ServiceTest::StartServer() {
  storage::StoreOptions options;
  options.folder = folder_;
  options.on_commit = [this](uint64_t change) { commits_(change); };
  auto store = storage::Store::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  auto sharing = access::Sharing::Open(folder_);
  ASSERT_TRUE(sharing.ok()) << sharing.status();
  sharing_ = *std::move(sharing);
  schedule::SchedulerOptions waits;
  waits.max_lanes = [this](const std::string& user) {
    const auto known = sharing_->store().GetUser(user);
    return known.ok() ? known->quota.lanes : std::optional<int64_t>();
  };
  waits.save_timeout = save_timeout_;
  scheduler_ =
      std::make_unique<schedule::Scheduler>(store_.get(), &SteadyClock(), waits, process::RandomId);
  ASSERT_TRUE(scheduler_->Start().ok());
  thread_ = std::make_unique<schedule::SchedulerThread>(scheduler_.get());
  const std::string address = absl::StrCat("unix:", folder_, "/c");
  const std::string worker_address = absl::StrCat("unix:", folder_, "/w");
  auto server = Server::Start({address, worker_address, "ada", pace_, sharing_.get(),
                               public_address_, ABLATE_SERVER_PROGRAM, sql_processor_time_},
                              store_.get(), thread_.get());
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  commits_.PassTo(server_.get());
  channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  worker_channel_ = grpc::CreateChannel(worker_address, grpc::InsecureChannelCredentials());
  experiments_ = v1::Experiments::NewStub(channel_);
  runs_ = v1::Runs::NewStub(channel_);
  metrics_ = v1::Metrics::NewStub(channel_);
  datasets_ = v1::Datasets::NewStub(channel_);
  artifacts_ = v1::Artifacts::NewStub(channel_);
  analyses_ = v1::Analyses::NewStub(channel_);
  reports_ = v1::Reports::NewStub(channel_);
  models_ = v1::Models::NewStub(channel_);
  workers_ = v1::Workers::NewStub(channel_);
  admin_ = v1::Admin::NewStub(channel_);
}

void ServiceTest::StopServer() {
  commits_.PassTo(nullptr);
  server_.reset();
  thread_.reset();
  scheduler_.reset();
  store_.reset();
  sharing_.reset();
}

void ServiceTest::Restart() {
  StopServer();
  StartServer();
}

v1::CreateExperimentResponse ServiceTest::Create(const v1::ExperimentSpec& spec, bool fresh) {
  v1::CreateExperimentRequest request;
  request.set_request_id(absl::StrCat("request ", ++requests_));
  request.set_fresh(fresh);
  *request.mutable_spec() = spec;
  v1::CreateExperimentResponse response;
  const grpc::Status status = TryCreate(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

grpc::Status ServiceTest::TryCreate(const v1::CreateExperimentRequest& request,
                                    v1::CreateExperimentResponse* response) {
  Context context;
  v1::CreateExperimentResponse ignored;
  return experiments_->CreateExperiment(&context, request,
                                        response == nullptr ? &ignored : response);
}

v1::CreateExperimentResponse ServiceTest::Preview(const v1::ExperimentSpec& spec, bool fresh) {
  v1::CreateExperimentRequest request;
  request.set_validate_only(true);
  request.set_fresh(fresh);
  *request.mutable_spec() = spec;
  v1::CreateExperimentResponse response;
  const grpc::Status status = TryCreate(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

v1::Experiment ServiceTest::Get(const std::string& name) {
  return AnswerOf(*experiments_, &v1::Experiments::Stub::GetExperiment,
                  Named<v1::GetExperimentRequest>(name));
}

v1::Experiment ServiceTest::Cancel(const std::string& experiment) {
  return AnswerOf(*experiments_, &v1::Experiments::Stub::CancelExperiment,
                  Named<v1::CancelExperimentRequest>(experiment));
}

grpc::Status ServiceTest::TryDelete(const std::string& experiment) {
  return StatusOf(*experiments_, &v1::Experiments::Stub::DeleteExperiment,
                  Named<v1::DeleteExperimentRequest>(experiment));
}

v1::Run ServiceTest::GetRun(const std::string& name) {
  return AnswerOf(*runs_, &v1::Runs::Stub::GetRun, Named<v1::GetRunRequest>(name));
}

std::vector<v1::Worker> ServiceTest::Workers() {
  const auto response = AnswerOf(*workers_, &v1::Workers::Stub::ListWorkers, {});
  return {response.workers().begin(), response.workers().end()};
}

v1::ListMetricsResponse ServiceTest::ListMetrics(const std::string& parent,
                                                 const std::string& cell) {
  v1::ListMetricsRequest request;
  request.set_parent(parent);
  request.set_cell(cell);
  return AnswerOf(*metrics_, &v1::Metrics::Stub::ListMetrics, request);
}

v1::Comparison ServiceTest::Compare(const v1::CompareRequest& request) {
  return AnswerOf(*metrics_, &v1::Metrics::Stub::Compare, request);
}

v1::Comparison ServiceTest::Compare(const std::string& experiment) {
  v1::CompareRequest request;
  request.set_experiment(experiment);
  return Compare(request);
}

grpc::Status ServiceTest::TryCompare(const v1::CompareRequest& request) {
  return StatusOf(*metrics_, &v1::Metrics::Stub::Compare, request);
}

std::vector<v1::RunRow> ServiceTest::Rows(const std::string& experiment) {
  v1::ListRunsRequest request;
  request.set_experiment(experiment);
  const auto response = AnswerOf(*runs_, &v1::Runs::Stub::ListRuns, request);
  return {response.rows().begin(), response.rows().end()};
}

grpc::Status ServiceTest::TryUpload(const std::vector<v1::UploadDatasetRequest>& messages,
                                    v1::Dataset* dataset) {
  Context context;
  v1::Dataset ignored;
  auto writer = datasets_->UploadDataset(&context, dataset == nullptr ? &ignored : dataset);
  for (const v1::UploadDatasetRequest& message : messages) {
    if (!writer->Write(message)) break;
  }
  writer->WritesDone();
  return writer->Finish();
}

v1::Dataset ServiceTest::Upload(const std::string& display_name, const std::string& text) {
  constexpr size_t kChunk = 1 << 20;
  std::vector<v1::UploadDatasetRequest> messages(1);
  messages[0].set_display_name(display_name);
  messages[0].set_sha256(Sha256Hex(text));
  messages[0].set_data(text.substr(0, kChunk));
  for (size_t at = kChunk; at < text.size(); at += kChunk) {
    messages.emplace_back().set_data(text.substr(at, kChunk));
  }
  v1::Dataset dataset;
  const grpc::Status status = TryUpload(messages, &dataset);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return dataset;
}

std::vector<v1::Series> ServiceTest::Query(const v1::QueryMetricsRequest& request) {
  std::vector<v1::Series> all;
  const grpc::Status status = TryQuery(request, &all);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return all;
}

grpc::Status ServiceTest::TryQuery(const v1::QueryMetricsRequest& request,
                                   std::vector<v1::Series>* series) {
  Context context;
  std::vector<v1::Series> ignored;
  return ReadAll(metrics_->QueryMetrics(&context, request).get(),
                 series == nullptr ? &ignored : series);
}

std::string ServiceTest::Read(const std::string& artifact, uint64_t offset) {
  Context context;
  v1::ReadArtifactRequest request;
  request.set_name(artifact);
  request.set_offset(offset);
  auto reader = artifacts_->ReadArtifact(&context, request);
  std::string bytes;
  v1::ArtifactChunk chunk;
  while (reader->Read(&chunk)) bytes += chunk.data();
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return status.ok() ? bytes : "";
}

std::unique_ptr<FakeWorker> ServiceTest::MakeWorker(const std::string& name, uint32_t lanes) {
  return std::make_unique<FakeWorker>(worker_channel_, name, lanes);
}

std::unique_ptr<FakeWorker> ServiceTest::MakeAnalyst() {
  return std::make_unique<FakeWorker>(worker_channel_, "cpu-analysis", 1, worker::v1::ANALYSIS);
}

void ServiceTest::TrainAll(FakeWorker* worker, size_t runs) {
  for (size_t i = 0; i < runs; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Points(
        run, {{"train/loss", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {9, 8, 7, 6, 5, 4, 3, 2, 1, .1}}}, 10);
    worker->Checkpoint(run, 10, absl::StrCat("weights of ", run.run.run()));
    worker->Finished(run, 10);
  }
  worker->Settle();
}

}  // namespace ablate::service
