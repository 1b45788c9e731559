// The server's RPCs that the client calls: messages, deadlines and repetitions.
#ifndef ABLATE_CLIENT_RPCS_H_
#define ABLATE_CLIENT_RPCS_H_

#include "ablate/v1/admin.pb.h"
#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/artifact.pb.h"
#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/dataset.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "ablate/v1/model.pb.h"
#include "ablate/v1/queue.pb.h"
#include "ablate/v1/report.pb.h"
#include "ablate/v1/run.pb.h"
#include "ablate/v1/worker.pb.h"
#include "ablate/worker/v1/worker.pb.h"
#include "absl/time/time.h"
#include "google/protobuf/empty.pb.h"

namespace ablate::client {

struct CallOptions {
  absl::Duration timeout = absl::Seconds(30);
  bool may_repeat = true;  // without harm, while the answer is UNAVAILABLE
  bool only = false;       // a name that several experiments have is INVALID_ARGUMENT
};
// For calls that expand or compare a large grid.
inline constexpr CallOptions kLong{absl::Minutes(5)};
// For calls that change something each time.
inline constexpr CallOptions kOnce{absl::Seconds(30), /*may_repeat=*/false};
inline constexpr CallOptions kOnly{absl::Seconds(30), /*may_repeat=*/true, /*only=*/true};

// A method with one request and one response. The request's type gives its name: GetRun takes a
// GetRunRequest.
template <typename Request, typename Response>
struct Rpc {
  CallOptions options = {};
  const char* service = nullptr;  // null: the one in the request's file
};

// A method whose response is a stream.
template <typename Request, typename Message>
struct StreamRpc {};

// A method whose request is a stream. The service is as for Rpc.
template <typename Request, typename Response>
struct UploadRpc {
  const char* service = nullptr;
};

// May be repeated: its request ID identifies it.
inline constexpr Rpc<v1::CreateExperimentRequest, v1::CreateExperimentResponse> kCreateExperiment{
    kLong};
inline constexpr UploadRpc<v1::ImportRequest, v1::ImportResponse> kImport{"Experiments"};
inline constexpr Rpc<v1::GetExperimentRequest, v1::Experiment> kGetExperiment;
// Does the same before something is removed.
inline constexpr Rpc<v1::GetExperimentRequest, v1::Experiment> kGetOnlyExperiment{kOnly};
inline constexpr Rpc<v1::ListExperimentsRequest, v1::ListExperimentsResponse> kListExperiments;
inline constexpr Rpc<v1::DiffExperimentsRequest, v1::DiffExperimentsResponse> kDiffExperiments{
    kLong};
inline constexpr Rpc<v1::UpdateExperimentRequest, v1::Experiment> kUpdateExperiment;
inline constexpr Rpc<v1::CancelExperimentRequest, v1::Experiment> kCancelExperiment;
inline constexpr Rpc<v1::DeleteExperimentRequest, v1::DeleteExperimentResponse> kDeleteExperiment{
    kOnce};
inline constexpr StreamRpc<v1::WatchExperimentRequest, v1::ExperimentEvent> kWatchExperiment;

inline constexpr Rpc<v1::GetRunRequest, v1::Run> kGetRun;
inline constexpr Rpc<v1::ListRunsRequest, v1::ListRunsResponse> kListRuns;
inline constexpr Rpc<v1::ListRunEventsRequest, v1::ListRunEventsResponse> kListRunEvents;
inline constexpr Rpc<v1::ReadRunLogRequest, v1::ReadRunLogResponse> kReadRunLog;

inline constexpr Rpc<v1::ListMetricsRequest, v1::ListMetricsResponse> kListMetrics;
inline constexpr StreamRpc<v1::QueryMetricsRequest, v1::Series> kQueryMetrics;
inline constexpr Rpc<v1::CompareRequest, v1::Comparison> kCompare{kLong, "Metrics"};
inline constexpr StreamRpc<v1::SqlRequest, v1::SqlRows> kSql;

inline constexpr UploadRpc<v1::UploadDatasetRequest, v1::Dataset> kUploadDataset;
inline constexpr Rpc<v1::GetUploadRequest, v1::PartialUpload> kGetUpload;
inline constexpr Rpc<v1::GetDatasetRequest, v1::Dataset> kGetDataset;
// Does the same with `verify`: the server reads its bytes.
inline constexpr Rpc<v1::GetDatasetRequest, v1::Dataset> kVerifyDataset{kLong};
inline constexpr StreamRpc<v1::DownloadDatasetRequest, v1::DatasetChunk> kDownloadDataset;
inline constexpr Rpc<v1::ListDatasetsRequest, v1::ListDatasetsResponse> kListDatasets;
inline constexpr Rpc<v1::DeleteDatasetRequest, google::protobuf::Empty> kDeleteDataset{kOnce};

inline constexpr Rpc<v1::ListArtifactsRequest, v1::ListArtifactsResponse> kListArtifacts;
inline constexpr StreamRpc<v1::ReadArtifactRequest, v1::ArtifactChunk> kReadArtifact;

inline constexpr Rpc<v1::RenderTableRequest, v1::RenderTableResponse> kRenderTable{kLong};
inline constexpr Rpc<v1::RenderFigureRequest, v1::RenderFigureResponse> kRenderFigure{kLong};
inline constexpr StreamRpc<v1::RenderReportRequest, v1::FileChunk> kRenderReport;
inline constexpr StreamRpc<v1::ExportRequest, v1::FileChunk> kExport;

inline constexpr StreamRpc<v1::GenerateRequest, v1::GenerateResponse> kGenerate;
inline constexpr UploadRpc<v1::UploadModelRequest, v1::Model> kUploadModel;
inline constexpr Rpc<v1::GetModelRequest, v1::Model> kGetModel;
inline constexpr Rpc<v1::ListModelsRequest, v1::ListModelsResponse> kListModels;
inline constexpr Rpc<v1::DeleteModelRequest, google::protobuf::Empty> kDeleteModel{kOnce};
inline constexpr StreamRpc<v1::ExportModelRequest, v1::FileChunk> kExportModel;

// May be repeated: the server makes one of several equal ones.
inline constexpr Rpc<v1::CreateAnalysisRequest, v1::CreateAnalysisResponse> kCreateAnalysis;
inline constexpr Rpc<v1::GetAnalysisRequest, v1::Analysis> kGetAnalysis;
inline constexpr Rpc<v1::ListAnalysesRequest, v1::ListAnalysesResponse> kListAnalyses;
inline constexpr Rpc<v1::CancelAnalysisRequest, v1::Analysis> kCancelAnalysis;
inline constexpr Rpc<v1::DeleteAnalysisRequest, google::protobuf::Empty> kDeleteAnalysis{kOnce};
inline constexpr StreamRpc<v1::WatchAnalysisRequest, v1::Analysis> kWatchAnalysis;
inline constexpr StreamRpc<v1::ReadAnalysisArraysRequest, v1::AnalysisArraysChunk>
    kReadAnalysisArrays;

inline constexpr Rpc<v1::ListWorkersRequest, v1::ListWorkersResponse> kListWorkers;
inline constexpr Rpc<v1::ListQueueRequest, v1::ListQueueResponse> kListQueue;
inline constexpr Rpc<worker::v1::SyncPilotsRequest, worker::v1::SyncPilotsResponse> kSyncPilots;

inline constexpr Rpc<v1::WhoAmIRequest, v1::WhoAmIResponse> kWhoAmI;
inline constexpr Rpc<v1::InitializeSharingRequest, v1::JoinFile> kInitializeSharing{kOnce};
inline constexpr Rpc<v1::RenewCertificateRequest, v1::RenewCertificateResponse> kRenewCertificate{
    kOnce};
inline constexpr Rpc<v1::CheckStoreRequest, v1::CheckStoreResponse> kCheckStore{
    {absl::Hours(1), /*may_repeat=*/false}};
inline constexpr Rpc<v1::CreateUserRequest, v1::User> kCreateUser{kOnce};
inline constexpr Rpc<v1::ListUsersRequest, v1::ListUsersResponse> kListUsers;
inline constexpr Rpc<v1::UpdateUserRequest, v1::User> kUpdateUser;
inline constexpr Rpc<v1::SetQuotaRequest, v1::User> kSetQuota;
inline constexpr Rpc<v1::DeleteUserRequest, google::protobuf::Empty> kDeleteUser{kOnce};
inline constexpr Rpc<v1::CreateTokenRequest, v1::CreateTokenResponse> kCreateToken{kOnce};
inline constexpr Rpc<v1::ListTokensRequest, v1::ListTokensResponse> kListTokens;
inline constexpr Rpc<v1::RevokeTokenRequest, v1::Token> kRevokeToken;
inline constexpr Rpc<v1::ListAuditRequest, v1::ListAuditResponse> kListAudit;

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_RPCS_H_
