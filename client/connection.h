// Calls the server's methods: deadlines, retries, lists page by page, and errors as absl::Status.
#ifndef ABLATE_CLIENT_CONNECTION_H_
#define ABLATE_CLIENT_CONNECTION_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/join/channel.h"

namespace ablate::client {

using Sleep = std::function<void(absl::Duration)>;

// Takes each message of a stream. An error ends the stream and is the result of the call.
template <typename Message>
using OnMessage = std::function<absl::Status(const Message&)>;

using join::ServerAddress;

// Returns the kind of the server's error, such as RUN_NOT_FOUND; empty if the server gave none.
std::string ReasonOf(const absl::Status& status);

// Returns true if the same call may succeed later: the server is away, or its error says so.
bool MayTryAgain(const absl::Status& status);

// Takes a name that several experiments have, once, and the ID of the newest, which the server
// used.
using OnNewestOf = std::function<void(const std::string& name, const std::string& id)>;

// Unary calls have a deadline of 30 s, or 5 min if they expand or compare a large grid. Calls that
// may be repeated without harm are tried three times while the answer is UNAVAILABLE. Streams have
// no deadline and are not repeated. Errors have the server's message; if the server gave no answer,
// UNAVAILABLE names the next step. Not thread-safe.
class Connection {
 public:
  // Connects with the first call.
  Connection(const ServerAddress& server, Sleep sleep, OnNewestOf on_newest = nullptr);
  ~Connection();

  // Returns true for a server of a login, which others may use, too.
  bool is_elsewhere() const { return is_elsewhere_; }

  absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
      const v1::CreateExperimentRequest& request);
  absl::StatusOr<v1::Experiment> GetExperiment(const v1::GetExperimentRequest& request);
  // Does the same before something is removed: INVALID_ARGUMENT if several experiments have the
  // name.
  absl::StatusOr<v1::Experiment> GetOnlyExperiment(const v1::GetExperimentRequest& request);
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const v1::ListExperimentsRequest& request);
  absl::StatusOr<v1::DiffExperimentsResponse> DiffExperiments(
      const v1::DiffExperimentsRequest& request);
  absl::StatusOr<v1::Experiment> UpdateExperiment(const v1::UpdateExperimentRequest& request);
  absl::StatusOr<v1::Experiment> CancelExperiment(const v1::CancelExperimentRequest& request);
  absl::StatusOr<v1::DeleteExperimentResponse> DeleteExperiment(
      const v1::DeleteExperimentRequest& request);
  absl::Status WatchExperiment(const v1::WatchExperimentRequest& request,
                               const OnMessage<v1::ExperimentEvent>& on_event);

  absl::StatusOr<v1::Run> GetRun(const v1::GetRunRequest& request);
  absl::StatusOr<v1::ListRunsResponse> ListRuns(const v1::ListRunsRequest& request);
  absl::StatusOr<v1::ListRunEventsResponse> ListRunEvents(const v1::ListRunEventsRequest& request);

  absl::StatusOr<v1::ListMetricsResponse> ListMetrics(const v1::ListMetricsRequest& request);
  absl::Status QueryMetrics(const v1::QueryMetricsRequest& request,
                            const OnMessage<v1::Series>& on_series);
  absl::Status Sql(const v1::SqlRequest& request, const OnMessage<v1::SqlRows>& on_rows);
  absl::StatusOr<v1::Comparison> Compare(const v1::CompareRequest& request);

  // `first` has the name, the hash and the offset; `next_chunk` gives the bytes from there in
  // order, an empty string at the end.
  absl::StatusOr<v1::Dataset> UploadDataset(
      const v1::UploadDatasetRequest& first,
      const std::function<absl::StatusOr<std::string>()>& next_chunk);
  absl::StatusOr<v1::Dataset> GetDataset(const v1::GetDatasetRequest& request);
  absl::Status DownloadDataset(const v1::DownloadDatasetRequest& request,
                               const OnMessage<v1::DatasetChunk>& on_chunk);
  absl::StatusOr<v1::PartialUpload> GetUpload(const v1::GetUploadRequest& request);
  absl::StatusOr<v1::ListDatasetsResponse> ListDatasets(const v1::ListDatasetsRequest& request);
  absl::Status DeleteDataset(const v1::DeleteDatasetRequest& request);

  absl::StatusOr<v1::ListArtifactsResponse> ListArtifacts(const v1::ListArtifactsRequest& request);
  absl::Status ReadArtifact(const v1::ReadArtifactRequest& request,
                            const OnMessage<v1::ArtifactChunk>& on_chunk);

  absl::Status RenderReport(const v1::RenderReportRequest& request,
                            const OnMessage<v1::FileChunk>& on_chunk);
  absl::Status Export(const v1::ExportRequest& request, const OnMessage<v1::FileChunk>& on_chunk);
  absl::Status Generate(const v1::GenerateRequest& request,
                        const OnMessage<v1::GenerateResponse>& on_message);
  // `next` gives the messages in order, nothing at the end.
  absl::StatusOr<v1::Model> UploadModel(
      const std::function<absl::StatusOr<std::optional<v1::UploadModelRequest>>()>& next);
  absl::StatusOr<v1::Model> GetModel(const v1::GetModelRequest& request);
  absl::StatusOr<v1::ListModelsResponse> ListModels(const v1::ListModelsRequest& request);
  absl::Status DeleteModel(const v1::DeleteModelRequest& request);
  absl::Status ExportModel(const v1::ExportModelRequest& request,
                           const OnMessage<v1::FileChunk>& on_chunk);
  absl::StatusOr<v1::RenderTableResponse> RenderTable(const v1::RenderTableRequest& request);
  absl::StatusOr<v1::RenderFigureResponse> RenderFigure(const v1::RenderFigureRequest& request);

  absl::StatusOr<v1::CreateAnalysisResponse> CreateAnalysis(
      const v1::CreateAnalysisRequest& request);
  absl::StatusOr<v1::Analysis> GetAnalysis(const v1::GetAnalysisRequest& request);
  absl::StatusOr<v1::ListAnalysesResponse> ListAnalyses(const v1::ListAnalysesRequest& request);
  absl::StatusOr<v1::Analysis> CancelAnalysis(const v1::CancelAnalysisRequest& request);
  absl::Status DeleteAnalysis(const v1::DeleteAnalysisRequest& request);
  absl::Status WatchAnalysis(const v1::WatchAnalysisRequest& request,
                             const OnMessage<v1::Analysis>& on_change);
  absl::Status ReadAnalysisArrays(const v1::ReadAnalysisArraysRequest& request,
                                  const OnMessage<v1::AnalysisArraysChunk>& on_chunk);

  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(const v1::ListWorkersRequest& request);
  // From now on, unary calls are made once, end within `timeout`, and fail without an explanation.
  void LimitCalls(absl::Duration timeout);

  // Calls once, to find out if a server runs.
  absl::StatusOr<v1::ListWorkersResponse> ListWorkersWithin(absl::Duration timeout);

  absl::StatusOr<v1::WhoAmIResponse> WhoAmI(const v1::WhoAmIRequest& request);
  absl::StatusOr<v1::JoinFile> InitializeSharing(const v1::InitializeSharingRequest& request);
  absl::StatusOr<v1::RenewCertificateResponse> RenewCertificate(
      const v1::RenewCertificateRequest& request);
  absl::StatusOr<v1::User> CreateUser(const v1::CreateUserRequest& request);
  absl::StatusOr<v1::ListUsersResponse> ListUsers(const v1::ListUsersRequest& request);
  absl::StatusOr<v1::User> UpdateUser(const v1::UpdateUserRequest& request);
  absl::StatusOr<v1::User> SetQuota(const v1::SetQuotaRequest& request);
  absl::Status DeleteUser(const v1::DeleteUserRequest& request);
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensResponse> ListTokens(const v1::ListTokensRequest& request);
  absl::StatusOr<v1::Token> RevokeToken(const v1::RevokeTokenRequest& request);
  absl::StatusOr<v1::ListAuditResponse> ListAudit(const v1::ListAuditRequest& request);

 private:
  class Caller;  // gRPC's headers are heavy: only connection.cc has them
  const bool is_elsewhere_;
  std::unique_ptr<Caller> caller_;
};

// Returns all pages of a list from `request` on as one response without a token: `list` fetches a
// page, `rows` returns its rows.
template <typename Request, typename Response, typename Row>
absl::StatusOr<Response> ListAll(Connection* connection,
                                 absl::StatusOr<Response> (Connection::*list)(const Request&),
                                 google::protobuf::RepeatedPtrField<Row>* (Response::*rows)(),
                                 Request request) {
  Response all;
  do {
    ASSIGN_OR_RETURN(Response page, (connection->*list)(request));
    request.set_page_token(page.next_page_token());
    for (Row& row : *(page.*rows)()) *(all.*rows)()->Add() = std::move(row);
  } while (!request.page_token().empty());
  return all;
}

// Returns the first `limit` rows, 0 for all, over as many pages as needed. The token of the last
// page stays as a sign that there are more.
template <typename Request, typename Response, typename Row>
absl::StatusOr<Response> ListFirst(Connection* connection,
                                   absl::StatusOr<Response> (Connection::*list)(const Request&),
                                   google::protobuf::RepeatedPtrField<Row>* (Response::*rows)(),
                                   Request request, uint32_t limit) {
  constexpr uint32_t kPageSize = 1000;
  const uint32_t most = limit > 0 ? limit : std::numeric_limits<int32_t>::max();
  Response all;
  auto* found = (all.*rows)();
  do {
    request.set_page_size(std::min(kPageSize, most - static_cast<uint32_t>(found->size())));
    ASSIGN_OR_RETURN(Response page, (connection->*list)(request));
    request.set_page_token(page.next_page_token());
    for (Row& row : *(page.*rows)()) *found->Add() = std::move(row);
  } while (!request.page_token().empty() && static_cast<uint32_t>(found->size()) < most);
  all.set_next_page_token(request.page_token());
  return all;
}

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CONNECTION_H_
