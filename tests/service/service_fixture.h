// Runs a whole server in this process: real store and scheduler in a temporary folder, real
// sockets, real clients.
#ifndef ABLATE_TESTS_SERVICE_SERVICE_FIXTURE_H_
#define ABLATE_TESTS_SERVICE_SERVICE_FIXTURE_H_

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/admin.grpc.pb.h"
#include "ablate/v1/analysis.grpc.pb.h"
#include "ablate/v1/artifact.grpc.pb.h"
#include "ablate/v1/dataset.grpc.pb.h"
#include "ablate/v1/experiment.grpc.pb.h"
#include "ablate/v1/metric.grpc.pb.h"
#include "ablate/v1/model.grpc.pb.h"
#include "ablate/v1/report.grpc.pb.h"
#include "ablate/v1/run.grpc.pb.h"
#include "ablate/v1/worker.grpc.pb.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/access/sharing.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/server.h"
#include "storage/store.h"
#include "tests/service/fake_worker.h"

namespace ablate::service {

// A call's context with a deadline.
struct Context : grpc::ClientContext {
  Context() { set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60)); }
};

// Passes commits to the server while it exists.
class Commits {
 public:
  void PassTo(Server* server);
  void operator()(uint64_t change);

 private:
  Mutex mutex_;
  Server* server_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Parses a textproto.
template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}
inline v1::ExperimentSpec SpecOf(const std::string& text) {
  return FromText<v1::ExperimentSpec>(text);
}
// Returns a request for the object with the name.
template <typename Request>
Request Named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

// A stub's method with one response.
template <typename Stub, typename Request, typename Response>
using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

// Returns a call's status: StatusOf(*runs_, &v1::Runs::Stub::GetRun, request).
template <typename Stub, typename Request, typename Response>
grpc::Status StatusOf(Stub& stub, Method<Stub, Request, Response> method, const Request& request) {
  Context context;
  Response ignored;
  return (stub.*method)(&context, request, &ignored);
}
// Returns the response of a call, which must succeed.
template <typename Stub, typename Request, typename Response>
Response AnswerOf(Stub& stub, Method<Stub, Request, Response> method, const Request& request) {
  Context context;
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

// Reads a stream to its end, and returns its status.
template <typename Message>
grpc::Status ReadAll(grpc::ClientReader<Message>* reader, std::vector<Message>* messages) {
  for (Message message; reader->Read(&message);) messages->push_back(message);
  return reader->Finish();
}

// Returns two placements × `seeds` seeds of a tiny legacy_recall task.
v1::ExperimentSpec SmallSpec(uint32_t seeds = 1, const std::string& name = "small",
                             uint32_t steps = 10);

// Returns ten steps of a tiny model on documents, of which one is held out.
v1::ExperimentSpec DocumentsSpec(const std::string& dataset, uint32_t context = 8);

// Returns, from an error's details, the field of the first violation, or the reason.
std::string FieldOf(const grpc::Status& status);
std::string ReasonOf(const grpc::Status& status);

class ServiceTest : public testing::Test {
 protected:
  ServiceTest();
  ~ServiceTest() override;

  // Restarts the server on the same folder.
  void Restart();
  void StopServer();
  void StopClients() { server_->StopClients(); }
  schedule::SchedulerThread* scheduler() { return thread_.get(); }

  // Expects success.
  v1::CreateExperimentResponse Create(const v1::ExperimentSpec& spec, bool fresh = false);
  v1::Experiment Get(const std::string& name);
  v1::Experiment Cancel(const std::string& experiment);
  v1::Run GetRun(const std::string& name);
  std::vector<v1::Worker> Workers();
  v1::ListMetricsResponse ListMetrics(const std::string& parent, const std::string& cell = "");
  v1::Comparison Compare(const v1::CompareRequest& request);
  v1::Comparison Compare(const std::string& experiment);
  std::vector<v1::RunRow> Rows(const std::string& experiment);
  v1::Dataset Upload(const std::string& display_name, const std::string& text);
  std::vector<v1::Series> Query(const v1::QueryMetricsRequest& request);
  // Returns the bytes, or empty after a failure.
  std::string Read(const std::string& artifact, uint64_t offset = 0);

  // Returns the status of one attempt.
  grpc::Status TryCreate(const v1::CreateExperimentRequest& request,
                         v1::CreateExperimentResponse* response = nullptr);
  // Returns the answer to validate_only, which must succeed.
  v1::CreateExperimentResponse Preview(const v1::ExperimentSpec& spec, bool fresh = false);
  grpc::Status TryUpload(const std::vector<v1::UploadDatasetRequest>& messages,
                         v1::Dataset* dataset = nullptr);
  grpc::Status TryQuery(const v1::QueryMetricsRequest& request,
                        std::vector<v1::Series>* series = nullptr);
  grpc::Status TryCompare(const v1::CompareRequest& request);
  grpc::Status TryDelete(const std::string& experiment);

  // Returns an attached worker.
  std::unique_ptr<FakeWorker> MakeWorker(const std::string& name = "cpu-train", uint32_t lanes = 2);
  // Returns an attached worker for analyses.
  std::unique_ptr<FakeWorker> MakeAnalyst();
  // Trains everything that is queued: each run reports train/loss at steps 0 to 9 and a checkpoint.
  void TrainAll(FakeWorker* worker, size_t runs);

  storage::Store& store() { return *store_; }
  const std::string& folder() const { return folder_; }

  access::Sharing& sharing() { return *sharing_; }
  int public_port() const { return server_->public_port(); }

  // Pace of servers that are started from now on.
  rpc::MinPace pace_;
  // Long enough for all tests; after a change, Restart.
  absl::Duration save_timeout_ = absl::Seconds(60);
  absl::Duration sql_processor_time_ = absl::Seconds(1);  // likewise
  std::string public_address_;

  std::shared_ptr<grpc::Channel> channel_, worker_channel_;
  std::unique_ptr<v1::Experiments::Stub> experiments_;
  std::unique_ptr<v1::Runs::Stub> runs_;
  std::unique_ptr<v1::Metrics::Stub> metrics_;
  std::unique_ptr<v1::Datasets::Stub> datasets_;
  std::unique_ptr<v1::Artifacts::Stub> artifacts_;
  std::unique_ptr<v1::Analyses::Stub> analyses_;
  std::unique_ptr<v1::Reports::Stub> reports_;
  std::unique_ptr<v1::Models::Stub> models_;
  std::unique_ptr<v1::Workers::Stub> workers_;
  std::unique_ptr<v1::Admin::Stub> admin_;

 private:
  void StartServer();

  std::string folder_;
  Commits commits_;
  std::unique_ptr<access::Sharing> sharing_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<schedule::Scheduler> scheduler_;
  std::unique_ptr<schedule::SchedulerThread> thread_;
  std::unique_ptr<Server> server_;
  int requests_ = 0;
};

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_SERVICE_FIXTURE_H_
