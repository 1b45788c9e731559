// A server in this process whose answers a test writes as functions.
#ifndef ABLATE_TESTS_CLIENT_FAKE_SERVER_H_
#define ABLATE_TESTS_CLIENT_FAKE_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/admin.pb.h"
#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/artifact.pb.h"
#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/dataset.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "ablate/v1/model.pb.h"
#include "ablate/v1/report.pb.h"
#include "ablate/v1/run.pb.h"
#include "ablate/v1/worker.pb.h"
#include "absl/status/status.h"
#include "google/protobuf/empty.pb.h"

namespace ablate::client {

template <typename Request, typename Response>
using Answer = std::function<absl::Status(const Request&, Response*)>;

// `write` is false when the client has gone.
template <typename Request, typename Message>
using StreamAnswer =
    std::function<absl::Status(const Request&, const std::function<bool(const Message&)>& write)>;

// What is not set is UNIMPLEMENTED. Called on the server's threads. A status may carry the bytes of
// a google.rpc.Status as its payload kDetails.
inline constexpr const char* kDetails = "details";

// NOT_FOUND with such a payload, as our server answers.
absl::Status NotFound(const std::string& message, const std::string& reason);

struct Answers {
  // The value of kNewestOf in GetExperiment's answer; empty: it has none.
  std::string newest_of;
  Answer<v1::CreateExperimentRequest, v1::CreateExperimentResponse> create;
  Answer<v1::GetExperimentRequest, v1::Experiment> get;
  Answer<v1::ListExperimentsRequest, v1::ListExperimentsResponse> list;
  Answer<v1::DiffExperimentsRequest, v1::DiffExperimentsResponse> diff;
  Answer<v1::UpdateExperimentRequest, v1::Experiment> update;
  Answer<v1::CancelExperimentRequest, v1::Experiment> cancel;
  Answer<v1::DeleteExperimentRequest, v1::DeleteExperimentResponse> remove;
  StreamAnswer<v1::WatchExperimentRequest, v1::ExperimentEvent> watch;
  Answer<v1::GetRunRequest, v1::Run> run;
  Answer<v1::ListRunsRequest, v1::ListRunsResponse> runs;
  Answer<v1::ListRunEventsRequest, v1::ListRunEventsResponse> run_events;
  Answer<v1::ReadRunLogRequest, v1::ReadRunLogResponse> run_log;
  Answer<v1::ListMetricsRequest, v1::ListMetricsResponse> metrics;
  StreamAnswer<v1::QueryMetricsRequest, v1::Series> query;
  StreamAnswer<v1::SqlRequest, v1::SqlRows> sql;
  Answer<v1::CompareRequest, v1::Comparison> compare;
  // All messages of the upload.
  Answer<std::vector<v1::ImportRequest>, v1::ImportResponse> import;
  // Likewise.
  Answer<std::vector<v1::UploadDatasetRequest>, v1::Dataset> upload;
  Answer<v1::GetUploadRequest, v1::PartialUpload> get_upload;
  Answer<v1::GetDatasetRequest, v1::Dataset> dataset;
  StreamAnswer<v1::DownloadDatasetRequest, v1::DatasetChunk> download;
  Answer<v1::ListDatasetsRequest, v1::ListDatasetsResponse> datasets;
  Answer<v1::DeleteDatasetRequest, google::protobuf::Empty> remove_dataset;
  Answer<v1::ListArtifactsRequest, v1::ListArtifactsResponse> artifacts;
  StreamAnswer<v1::ReadArtifactRequest, v1::ArtifactChunk> read_artifact;
  StreamAnswer<v1::RenderReportRequest, v1::FileChunk> report;
  StreamAnswer<v1::ExportRequest, v1::FileChunk> export_points;
  StreamAnswer<v1::GenerateRequest, v1::GenerateResponse> generate;
  // All messages of the upload.
  Answer<std::vector<v1::UploadModelRequest>, v1::Model> upload_model;
  Answer<v1::GetModelRequest, v1::Model> model;
  Answer<v1::ListModelsRequest, v1::ListModelsResponse> models;
  Answer<v1::DeleteModelRequest, google::protobuf::Empty> remove_model;
  StreamAnswer<v1::ExportModelRequest, v1::FileChunk> export_model;
  Answer<v1::RenderTableRequest, v1::RenderTableResponse> table;
  Answer<v1::RenderFigureRequest, v1::RenderFigureResponse> figure;
  Answer<v1::CreateAnalysisRequest, v1::CreateAnalysisResponse> create_analysis;
  Answer<v1::GetAnalysisRequest, v1::Analysis> analysis;
  Answer<v1::ListAnalysesRequest, v1::ListAnalysesResponse> analyses;
  Answer<v1::CancelAnalysisRequest, v1::Analysis> cancel_analysis;
  Answer<v1::DeleteAnalysisRequest, google::protobuf::Empty> remove_analysis;
  StreamAnswer<v1::WatchAnalysisRequest, v1::Analysis> watch_analysis;
  StreamAnswer<v1::ReadAnalysisArraysRequest, v1::AnalysisArraysChunk> read_arrays;
  Answer<v1::ListWorkersRequest, v1::ListWorkersResponse> workers;
  Answer<v1::WhoAmIRequest, v1::WhoAmIResponse> who;
  Answer<v1::InitializeSharingRequest, v1::JoinFile> initialize;
  Answer<v1::RenewCertificateRequest, v1::RenewCertificateResponse> renew;
  Answer<v1::CreateUserRequest, v1::User> create_user;
  Answer<v1::DeleteUserRequest, google::protobuf::Empty> remove_user;
  Answer<v1::ListUsersRequest, v1::ListUsersResponse> users;
  Answer<v1::UpdateUserRequest, v1::User> update_user;
  Answer<v1::SetQuotaRequest, v1::User> quota;
  Answer<v1::CreateTokenRequest, v1::CreateTokenResponse> create_token;
  Answer<v1::ListTokensRequest, v1::ListTokensResponse> tokens;
  Answer<v1::RevokeTokenRequest, v1::Token> revoke;
  Answer<v1::ListAuditRequest, v1::ListAuditResponse> audit;
  // What the last WhoAmI had as its "authorization"; empty if it had none.
  std::string authorization;
};

class FakeServer {
 public:
  // Listens on a unix socket at `path`. `answers` may be changed between calls.
  FakeServer(const std::string& path, Answers* answers);
  // Listens on a free port of 127.0.0.1, with TLS. Both texts are PEM.
  FakeServer(const std::string& certificate, const std::string& key, Answers* answers);
  ~FakeServer();
  const std::string& address() const { return address_; }

 private:
  struct Services;
  std::string address_;
  std::unique_ptr<Services> services_;
};

}  // namespace ablate::client

#endif  // ABLATE_TESTS_CLIENT_FAKE_SERVER_H_
