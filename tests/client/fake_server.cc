// A server in this process whose answers a test writes as functions.
#include "tests/client/fake_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

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
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/metadata.h"

namespace ablate::client {
namespace {

using grpc::ServerContext;
using grpc::ServerWriter;
using grpc::Status;

Status ToGrpc(const absl::Status& status) {
  std::string details;
  if (const auto payload = status.GetPayload(kDetails)) details = std::string(*payload);
  return Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                details);
}

template <typename Request, typename Response>
Status Run(const Answer<Request, Response>& answer, const Request* request, Response* response) {
  if (!answer) return Status(grpc::StatusCode::UNIMPLEMENTED, "this test expects no such call");
  return ToGrpc(answer(*request, response));
}

template <typename Request, typename Message>
Status Stream(const StreamAnswer<Request, Message>& answer, const Request* request,
              ServerWriter<Message>* writer) {
  if (!answer) return Status(grpc::StatusCode::UNIMPLEMENTED, "this test expects no such call");
  return ToGrpc(
      answer(*request, [writer](const Message& message) { return writer->Write(message); }));
}

struct ExperimentsService : v1::Experiments::Service {
  explicit ExperimentsService(Answers* a) : answers(a) {}
  Status CreateExperiment(ServerContext*, const v1::CreateExperimentRequest* request,
                          v1::CreateExperimentResponse* response) override {
    return Run(answers->create, request, response);
  }
  Status GetExperiment(ServerContext* context, const v1::GetExperimentRequest* request,
                       v1::Experiment* response) override {
    if (!answers->newest_of.empty()) context->AddTrailingMetadata(kNewestOf, answers->newest_of);
    return Run(answers->get, request, response);
  }
  Status ListExperiments(ServerContext*, const v1::ListExperimentsRequest* request,
                         v1::ListExperimentsResponse* response) override {
    return Run(answers->list, request, response);
  }
  Status DiffExperiments(ServerContext*, const v1::DiffExperimentsRequest* request,
                         v1::DiffExperimentsResponse* response) override {
    return Run(answers->diff, request, response);
  }
  Status UpdateExperiment(ServerContext*, const v1::UpdateExperimentRequest* request,
                          v1::Experiment* response) override {
    return Run(answers->update, request, response);
  }
  Status CancelExperiment(ServerContext*, const v1::CancelExperimentRequest* request,
                          v1::Experiment* response) override {
    return Run(answers->cancel, request, response);
  }
  Status DeleteExperiment(ServerContext*, const v1::DeleteExperimentRequest* request,
                          v1::DeleteExperimentResponse* response) override {
    return Run(answers->remove, request, response);
  }
  Status WatchExperiment(ServerContext*, const v1::WatchExperimentRequest* request,
                         ServerWriter<v1::ExperimentEvent>* writer) override {
    return Stream(answers->watch, request, writer);
  }
  Answers* answers;
};

struct RunsService : v1::Runs::Service {
  explicit RunsService(Answers* a) : answers(a) {}
  Status GetRun(ServerContext*, const v1::GetRunRequest* request, v1::Run* response) override {
    return Run(answers->run, request, response);
  }
  Status ListRuns(ServerContext*, const v1::ListRunsRequest* request,
                  v1::ListRunsResponse* response) override {
    const Status status = Run(answers->runs, request, response);
    const std::string& part = request->part();
    auto* const rows = response->mutable_rows();
    rows->erase(std::remove_if(rows->begin(), rows->end(),
                               [&](const v1::RunRow& row) {
                                 return !part.empty() && row.cell() != part &&
                                        !absl::StartsWith(row.cell(), part + "-s");
                               }),
                rows->end());
    return status;
  }
  Status ListRunEvents(ServerContext*, const v1::ListRunEventsRequest* request,
                       v1::ListRunEventsResponse* response) override {
    return Run(answers->run_events, request, response);
  }
  Answers* answers;
};

struct MetricsService : v1::Metrics::Service {
  explicit MetricsService(Answers* a) : answers(a) {}
  Status ListMetrics(ServerContext*, const v1::ListMetricsRequest* request,
                     v1::ListMetricsResponse* response) override {
    return Run(answers->metrics, request, response);
  }
  Status QueryMetrics(ServerContext*, const v1::QueryMetricsRequest* request,
                      ServerWriter<v1::Series>* writer) override {
    return Stream(answers->query, request, writer);
  }
  Status Sql(ServerContext*, const v1::SqlRequest* request,
             ServerWriter<v1::SqlRows>* writer) override {
    return Stream(answers->sql, request, writer);
  }
  Status Compare(ServerContext*, const v1::CompareRequest* request,
                 v1::Comparison* response) override {
    return Run(answers->compare, request, response);
  }
  Answers* answers;
};

struct DatasetsService : v1::Datasets::Service {
  explicit DatasetsService(Answers* a) : answers(a) {}
  Status UploadDataset(ServerContext*, grpc::ServerReader<v1::UploadDatasetRequest>* reader,
                       v1::Dataset* response) override {
    std::vector<v1::UploadDatasetRequest> messages;
    v1::UploadDatasetRequest message;
    while (reader->Read(&message)) messages.push_back(message);
    return Run(answers->upload, &messages, response);
  }
  Status GetDataset(ServerContext*, const v1::GetDatasetRequest* request,
                    v1::Dataset* response) override {
    return Run(answers->dataset, request, response);
  }
  Status GetUpload(ServerContext*, const v1::GetUploadRequest* request,
                   v1::PartialUpload* response) override {
    return Run(answers->get_upload, request, response);
  }
  Status DownloadDataset(ServerContext*, const v1::DownloadDatasetRequest* request,
                         ServerWriter<v1::DatasetChunk>* writer) override {
    return Stream(answers->download, request, writer);
  }
  Status ListDatasets(ServerContext*, const v1::ListDatasetsRequest* request,
                      v1::ListDatasetsResponse* response) override {
    return Run(answers->datasets, request, response);
  }
  Status DeleteDataset(ServerContext*, const v1::DeleteDatasetRequest* request,
                       google::protobuf::Empty* response) override {
    return Run(answers->remove_dataset, request, response);
  }
  Answers* answers;
};

struct ArtifactsService : v1::Artifacts::Service {
  explicit ArtifactsService(Answers* a) : answers(a) {}
  Status ListArtifacts(ServerContext*, const v1::ListArtifactsRequest* request,
                       v1::ListArtifactsResponse* response) override {
    return Run(answers->artifacts, request, response);
  }
  Status ReadArtifact(ServerContext*, const v1::ReadArtifactRequest* request,
                      ServerWriter<v1::ArtifactChunk>* writer) override {
    return Stream(answers->read_artifact, request, writer);
  }
  Answers* answers;
};

struct ReportsService : v1::Reports::Service {
  explicit ReportsService(Answers* a) : answers(a) {}
  Status RenderTable(ServerContext*, const v1::RenderTableRequest* request,
                     v1::RenderTableResponse* response) override {
    return Run(answers->table, request, response);
  }
  Status RenderFigure(ServerContext*, const v1::RenderFigureRequest* request,
                      v1::RenderFigureResponse* response) override {
    return Run(answers->figure, request, response);
  }
  Status Export(ServerContext*, const v1::ExportRequest* request,
                ServerWriter<v1::FileChunk>* writer) override {
    return Stream(answers->export_points, request, writer);
  }
  Status RenderReport(ServerContext*, const v1::RenderReportRequest* request,
                      ServerWriter<v1::FileChunk>* writer) override {
    return Stream(answers->report, request, writer);
  }
  Answers* answers;
};

struct ModelsService : v1::Models::Service {
  explicit ModelsService(Answers* a) : answers(a) {}
  Status Generate(ServerContext*, const v1::GenerateRequest* request,
                  ServerWriter<v1::GenerateResponse>* writer) override {
    return Stream(answers->generate, request, writer);
  }
  Status UploadModel(ServerContext*, grpc::ServerReader<v1::UploadModelRequest>* reader,
                     v1::Model* response) override {
    std::vector<v1::UploadModelRequest> messages;
    v1::UploadModelRequest message;
    while (reader->Read(&message)) messages.push_back(message);
    return Run(answers->upload_model, &messages, response);
  }
  Status GetModel(ServerContext*, const v1::GetModelRequest* request,
                  v1::Model* response) override {
    return Run(answers->model, request, response);
  }
  Status ListModels(ServerContext*, const v1::ListModelsRequest* request,
                    v1::ListModelsResponse* response) override {
    return Run(answers->models, request, response);
  }
  Status DeleteModel(ServerContext*, const v1::DeleteModelRequest* request,
                     google::protobuf::Empty* response) override {
    return Run(answers->remove_model, request, response);
  }
  Status ExportModel(ServerContext*, const v1::ExportModelRequest* request,
                     ServerWriter<v1::FileChunk>* writer) override {
    return Stream(answers->export_model, request, writer);
  }
  Answers* answers;
};

struct AnalysesService : v1::Analyses::Service {
  explicit AnalysesService(Answers* a) : answers(a) {}
  Status CreateAnalysis(ServerContext*, const v1::CreateAnalysisRequest* request,
                        v1::CreateAnalysisResponse* response) override {
    return Run(answers->create_analysis, request, response);
  }
  Status GetAnalysis(ServerContext*, const v1::GetAnalysisRequest* request,
                     v1::Analysis* response) override {
    return Run(answers->analysis, request, response);
  }
  Status ListAnalyses(ServerContext*, const v1::ListAnalysesRequest* request,
                      v1::ListAnalysesResponse* response) override {
    return Run(answers->analyses, request, response);
  }
  Status CancelAnalysis(ServerContext*, const v1::CancelAnalysisRequest* request,
                        v1::Analysis* response) override {
    return Run(answers->cancel_analysis, request, response);
  }
  Status DeleteAnalysis(ServerContext*, const v1::DeleteAnalysisRequest* request,
                        google::protobuf::Empty* response) override {
    return Run(answers->remove_analysis, request, response);
  }
  Status WatchAnalysis(ServerContext*, const v1::WatchAnalysisRequest* request,
                       ServerWriter<v1::Analysis>* writer) override {
    return Stream(answers->watch_analysis, request, writer);
  }
  Status ReadAnalysisArrays(ServerContext*, const v1::ReadAnalysisArraysRequest* request,
                            ServerWriter<v1::AnalysisArraysChunk>* writer) override {
    return Stream(answers->read_arrays, request, writer);
  }
  Answers* answers;
};

struct WorkersService : v1::Workers::Service {
  explicit WorkersService(Answers* a) : answers(a) {}
  Status ListWorkers(ServerContext*, const v1::ListWorkersRequest* request,
                     v1::ListWorkersResponse* response) override {
    return Run(answers->workers, request, response);
  }
  Answers* answers;
};

struct AdminService : v1::Admin::Service {
  explicit AdminService(Answers* a) : answers(a) {}
  Status WhoAmI(ServerContext* context, const v1::WhoAmIRequest* request,
                v1::WhoAmIResponse* response) override {
    const auto found = context->client_metadata().find("authorization");
    const bool given = found != context->client_metadata().end();
    answers->authorization =
        given ? std::string(found->second.data(), found->second.size()) : std::string();
    return Run(answers->who, request, response);
  }
  Status InitializeSharing(ServerContext*, const v1::InitializeSharingRequest* request,
                           v1::JoinFile* response) override {
    return Run(answers->initialize, request, response);
  }
  Status RenewCertificate(ServerContext*, const v1::RenewCertificateRequest* request,
                          v1::RenewCertificateResponse* response) override {
    return Run(answers->renew, request, response);
  }
  Status CreateUser(ServerContext*, const v1::CreateUserRequest* request,
                    v1::User* response) override {
    return Run(answers->create_user, request, response);
  }
  Status DeleteUser(ServerContext*, const v1::DeleteUserRequest* request,
                    google::protobuf::Empty* response) override {
    return Run(answers->remove_user, request, response);
  }
  Status ListUsers(ServerContext*, const v1::ListUsersRequest* request,
                   v1::ListUsersResponse* response) override {
    return Run(answers->users, request, response);
  }
  Status UpdateUser(ServerContext*, const v1::UpdateUserRequest* request,
                    v1::User* response) override {
    return Run(answers->update_user, request, response);
  }
  Status SetQuota(ServerContext*, const v1::SetQuotaRequest* request, v1::User* response) override {
    return Run(answers->quota, request, response);
  }
  Status CreateToken(ServerContext*, const v1::CreateTokenRequest* request,
                     v1::CreateTokenResponse* response) override {
    return Run(answers->create_token, request, response);
  }
  Status ListTokens(ServerContext*, const v1::ListTokensRequest* request,
                    v1::ListTokensResponse* response) override {
    return Run(answers->tokens, request, response);
  }
  Status RevokeToken(ServerContext*, const v1::RevokeTokenRequest* request,
                     v1::Token* response) override {
    return Run(answers->revoke, request, response);
  }
  Status ListAudit(ServerContext*, const v1::ListAuditRequest* request,
                   v1::ListAuditResponse* response) override {
    return Run(answers->audit, request, response);
  }
  Answers* answers;
};

}  // namespace

absl::Status NotFound(const std::string& message, const std::string& reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  absl::Status status = absl::NotFoundError(message);
  status.SetPayload(kDetails, absl::Cord(details.SerializeAsString()));
  return status;
}

struct FakeServer::Services {
  explicit Services(Answers* answers)
      : experiments(answers),
        runs(answers),
        metrics(answers),
        datasets(answers),
        artifacts(answers),
        reports(answers),
        models(answers),
        analyses(answers),
        workers(answers),
        admin(answers) {}

  ExperimentsService experiments;
  RunsService runs;
  MetricsService metrics;
  DatasetsService datasets;
  ArtifactsService artifacts;
  ReportsService reports;
  ModelsService models;
  AnalysesService analyses;
  WorkersService workers;
  AdminService admin;
  std::unique_ptr<grpc::Server> server;

  // `port` is the one that was taken, where the address names none.
  void Start(const std::string& address, const std::shared_ptr<grpc::ServerCredentials>& how,
             int* port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, how, port);
    builder.RegisterService(&experiments);
    builder.RegisterService(&runs);
    builder.RegisterService(&metrics);
    builder.RegisterService(&datasets);
    builder.RegisterService(&artifacts);
    builder.RegisterService(&reports);
    builder.RegisterService(&models);
    builder.RegisterService(&analyses);
    builder.RegisterService(&workers);
    builder.RegisterService(&admin);
    server = builder.BuildAndStart();
  }
};

FakeServer::FakeServer(const std::string& path, Answers* answers)
    : address_("unix:" + path), services_(std::make_unique<Services>(answers)) {
  services_->Start(address_, grpc::InsecureServerCredentials(), nullptr);
}

FakeServer::FakeServer(const std::string& certificate, const std::string& key, Answers* answers)
    : services_(std::make_unique<Services>(answers)) {
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({key, certificate});
  int port = 0;
  services_->Start("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeServer::~FakeServer() { services_->server->Shutdown(); }

}  // namespace ablate::client
