#include "client/connection.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/join/channel.h"
#include "proto/join/tls_trouble.h"
#include "proto/metadata.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kDefaultTimeout = absl::Seconds(30);
constexpr absl::Duration kLongTimeout = absl::Minutes(5);
constexpr absl::Duration kRetryDelays[] = {absl::Milliseconds(100), absl::Milliseconds(400)};
// A response with 100,000 cells takes some 20 MB.
constexpr int kMaxMessageBytes = 128 << 20;

struct CallOptions {
  absl::Duration timeout = kDefaultTimeout;
  bool may_repeat = true;
  bool only = false;  // a name that several experiments have is an error
};
// For calls that expand or compare a large grid.
constexpr CallOptions kLong = {kLongTimeout, true};
// For calls that change something each time.
constexpr CallOptions kOnce = {kDefaultTimeout, false};

// Returns names that several experiments have, with the ID of the newest, from the metadata of an
// answer.
std::vector<std::pair<std::string, std::string>> NewestOf(const grpc::ClientContext& context) {
  std::vector<std::pair<std::string, std::string>> named;
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto [first, last] = metadata.equal_range(kNewestOf);
  for (auto at = first; at != last; ++at) {
    named.push_back(absl::StrSplit(absl::string_view(at->second.data(), at->second.size()),
                                   absl::MaxSplits(' ', 1)));
  }
  return named;
}

std::shared_ptr<grpc::Channel> MakeChannel(const ServerAddress& server) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A server that restarts is back within a second: look often. Not
  // GRPC_ARG_MIN_RECONNECT_BACKOFF_MS: that is also how long a connection may take, and a busy
  // machine takes its time.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return join::OpenChannel(server, arguments);
}

// The first of the error's details that is of this type, if there is one.
template <typename Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : details.details()) {
    if (Detail detail; any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

// The server's message and, if they say more, the descriptions of its field violations.
std::string MessageOf(const grpc::Status& status) {
  std::string message = status.error_message();
  if (const auto bad = DetailOf<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad->field_violations()) {
      if (absl::StrContains(message, violation.description())) continue;
      absl::StrAppend(&message, message.empty() ? "" : "; ", violation.description());
    }
  }
  return message;
}

// Payload of a status: the reason of the server.
constexpr absl::string_view kReason = "reason";

// Payload of a status: the same call may succeed later.
constexpr absl::string_view kRetry = "retry";

// Returns an error for a server that gave no answer, with the next step and the transport's
// message.
absl::Status NoAnswer(const ServerAddress& server, const std::string& why) {
  if (server.authority.empty()) {
    return absl::UnavailableError(absl::StrCat("no server answers at ", server.address,
                                               server.given ? "" : ": run `ablate up`", " (", why,
                                               ")"));
  }
  RETURN_IF_ERROR(join::DiagnoseTls(server));
  return absl::UnavailableError(absl::StrCat("the server ", server.login, " does not answer at ",
                                             server.address, " (", why, ")"));
}

// Our server gives details with every error, the transport none.
bool IsAnswer(const grpc::Status& status) { return !status.error_details().empty(); }

// Returns true for a call that the transport cancelled: it reached a server that shuts down.
// Nothing else cancels.
bool IsCutOff(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::CANCELLED && !IsAnswer(status);
}

// Converts a status, with the server's message, field violations and reason. UNAVAILABLE without an
// answer gets the server's address and the next step, which takes a while to find.
absl::Status ToStatus(const grpc::Status& status, const ServerAddress& server) {
  const std::string& address = server.address;
  if (status.ok()) return absl::OkStatus();
  if (IsCutOff(status)) {
    return absl::UnavailableError(absl::StrCat("the server at ", address, " is shutting down"));
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !IsAnswer(status)) {
    return NoAnswer(server, MessageOf(status));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(
        absl::StrCat("the server at ", address, " did not answer in time"));
  }
  absl::Status answer(static_cast<absl::StatusCode>(status.error_code()), MessageOf(status));
  if (const auto info = DetailOf<google::rpc::ErrorInfo>(status)) {
    answer.SetPayload(kReason, absl::Cord(info->reason()));
  }
  if (DetailOf<google::rpc::RetryInfo>(status).has_value()) {
    answer.SetPayload(kRetry, absl::Cord());
  }
  return answer;
}

}  // namespace

std::string ReasonOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReason);
  return reason.has_value() ? std::string(*reason) : "";
}

bool MayTryAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || status.GetPayload(kRetry).has_value();
}

// The server's stubs, and the three shapes that its methods have.
class Connection::Caller {
 public:
  Caller(const ServerAddress& server, Sleep sleep, OnNewestOf on_newest)
      : Caller(MakeChannel(server), server, sleep, on_newest) {}

  // One unary call with its timeout and, if it may be repeated, its repetitions.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, CallOptions options = {}) {
    if (limit_.has_value()) options = {*limit_, false};
    const auto* delay = std::begin(kRetryDelays);
    while (true) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           absl::ToChronoMicroseconds(options.timeout));
      Response response;
      Authorize(&context);
      const grpc::Status called = (stub<Stub>().*method)(&context, request, &response);
      if (called.ok()) {
        RETURN_IF_ERROR(Tell(context, options.only));
        return response;
      }
      const bool passes = called.error_code() == grpc::StatusCode::UNAVAILABLE || IsCutOff(called);
      const bool again = options.may_repeat && delay != std::end(kRetryDelays) && passes;
      if (!again && limit_.has_value()) return absl::UnavailableError("");
      if (!again) return ToStatus(called, server_);
      sleep_(*delay++);
    }
  }

  // Reads a stream to its end or until `on_message` returns an error.
  template <typename Stub, typename Request, typename Message>
  absl::Status Stream(std::unique_ptr<grpc::ClientReader<Message>> (Stub::*method)(
                          grpc::ClientContext*, const Request&),
                      const Request& request, const OnMessage<Message>& on_message) {
    grpc::ClientContext context;
    Authorize(&context);
    const auto reader = (stub<Stub>().*method)(&context, request);
    Message message;
    while (reader->Read(&message)) {
      const absl::Status status = on_message(message);
      if (status.ok()) continue;
      context.TryCancel();
      reader->Finish();
      return status;
    }
    const grpc::Status finished = reader->Finish();
    Tell(context, /*only=*/false).IgnoreError();
    return ToStatus(finished, server_);
  }

  // Writes a stream of the messages that `next` returns, until it returns none or an error.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Send(
      std::unique_ptr<grpc::ClientWriter<Request>> (Stub::*method)(grpc::ClientContext*, Response*),
      const std::function<absl::StatusOr<std::optional<Request>>()>& next) {
    grpc::ClientContext context;
    Authorize(&context);
    Response response;
    const auto writer = (stub<Stub>().*method)(&context, &response);
    while (true) {
      const auto message = next();
      if (!message.ok()) {
        context.TryCancel();
        writer->Finish();
        return message.status();
      }
      // A failed write means that the server has answered already: it needs no more, or refuses.
      if (!message->has_value() || !writer->Write(**message)) break;
    }
    writer->WritesDone();
    const grpc::Status finished = writer->Finish();
    if (!finished.ok()) return ToStatus(finished, server_);
    return response;
  }

  void Limit(absl::Duration timeout) { limit_ = timeout; }

 private:
  template <typename Stub>
  Stub& stub() {
    return std::get<Stub>(stubs_);
  }

  void Authorize(grpc::ClientContext* context) const { join::Authorize(server_, context); }

  using Stubs =
      std::tuple<v1::Experiments::Stub, v1::Runs::Stub, v1::Metrics::Stub, v1::Datasets::Stub,
                 v1::Artifacts::Stub, v1::Reports::Stub, v1::Models::Stub, v1::Analyses::Stub,
                 v1::Workers::Stub, v1::Admin::Stub>;

  Caller(const std::shared_ptr<grpc::Channel>& channel, const ServerAddress& server, Sleep& sleep,
         OnNewestOf& on_newest)
      : server_(server),
        sleep_(std::move(sleep)),
        on_newest_(std::move(on_newest)),
        stubs_(channel, channel, channel, channel, channel, channel, channel, channel, channel,
               channel) {}

  // Tells of names in the request that several experiments have; with `only` they are an error.
  absl::Status Tell(const grpc::ClientContext& context, bool only) {
    for (const auto& [name, id] : NewestOf(context)) {
      if (only) {
        return absl::InvalidArgumentError(
            absl::StrCat(reflect::Quoted(name), " is the name of several experiments, the newest ",
                         id, "; expected a whole ID. `ablate ls --archived` lists the IDs."));
      }
      if (told_.insert(name).second && on_newest_ != nullptr) on_newest_(name, id);
    }
    return absl::OkStatus();
  }

  const ServerAddress server_;
  const Sleep sleep_;
  const OnNewestOf on_newest_;
  std::optional<absl::Duration> limit_;  // of each call
  std::set<std::string> told_;           // names passed to on_newest_
  Stubs stubs_;
};

Connection::Connection(const ServerAddress& server, Sleep sleep, OnNewestOf on_newest)
    : is_elsewhere_(!server.login.empty()),
      caller_(std::make_unique<Caller>(server, std::move(sleep), std::move(on_newest))) {}

Connection::~Connection() = default;

absl::StatusOr<v1::CreateExperimentResponse> Connection::CreateExperiment(
    const v1::CreateExperimentRequest& request) {
  // May be repeated: the request id says that it is the same one.
  return caller_->Call(&v1::Experiments::Stub::CreateExperiment, request, kLong);
}

absl::StatusOr<v1::Experiment> Connection::GetExperiment(const v1::GetExperimentRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::GetExperiment, request);
}

absl::StatusOr<v1::Experiment> Connection::GetOnlyExperiment(
    const v1::GetExperimentRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::GetExperiment, request,
                       {kDefaultTimeout, true, /*only=*/true});
}

absl::StatusOr<v1::ListExperimentsResponse> Connection::ListExperiments(
    const v1::ListExperimentsRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::ListExperiments, request);
}

absl::StatusOr<v1::DiffExperimentsResponse> Connection::DiffExperiments(
    const v1::DiffExperimentsRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::DiffExperiments, request, kLong);
}

absl::StatusOr<v1::Experiment> Connection::UpdateExperiment(
    const v1::UpdateExperimentRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::UpdateExperiment, request);
}

absl::StatusOr<v1::Experiment> Connection::CancelExperiment(
    const v1::CancelExperimentRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::CancelExperiment, request);
}

absl::StatusOr<v1::DeleteExperimentResponse> Connection::DeleteExperiment(
    const v1::DeleteExperimentRequest& request) {
  return caller_->Call(&v1::Experiments::Stub::DeleteExperiment, request, kOnce);
}

absl::Status Connection::WatchExperiment(const v1::WatchExperimentRequest& request,
                                         const OnMessage<v1::ExperimentEvent>& on_event) {
  return caller_->Stream(&v1::Experiments::Stub::WatchExperiment, request, on_event);
}

absl::StatusOr<v1::Run> Connection::GetRun(const v1::GetRunRequest& request) {
  return caller_->Call(&v1::Runs::Stub::GetRun, request);
}

absl::StatusOr<v1::ListRunsResponse> Connection::ListRuns(const v1::ListRunsRequest& request) {
  return caller_->Call(&v1::Runs::Stub::ListRuns, request);
}

absl::StatusOr<v1::ListRunEventsResponse> Connection::ListRunEvents(
    const v1::ListRunEventsRequest& request) {
  return caller_->Call(&v1::Runs::Stub::ListRunEvents, request);
}

absl::StatusOr<v1::ListMetricsResponse> Connection::ListMetrics(
    const v1::ListMetricsRequest& request) {
  return caller_->Call(&v1::Metrics::Stub::ListMetrics, request);
}

absl::Status Connection::QueryMetrics(const v1::QueryMetricsRequest& request,
                                      const OnMessage<v1::Series>& on_series) {
  return caller_->Stream(&v1::Metrics::Stub::QueryMetrics, request, on_series);
}

absl::Status Connection::Sql(const v1::SqlRequest& request, const OnMessage<v1::SqlRows>& on_rows) {
  return caller_->Stream(&v1::Metrics::Stub::Sql, request, on_rows);
}

absl::StatusOr<v1::Comparison> Connection::Compare(const v1::CompareRequest& request) {
  return caller_->Call(&v1::Metrics::Stub::Compare, request, kLong);
}

absl::StatusOr<v1::Dataset> Connection::UploadDataset(
    const v1::UploadDatasetRequest& first,
    const std::function<absl::StatusOr<std::string>()>& next_chunk) {
  using Next = absl::StatusOr<std::optional<v1::UploadDatasetRequest>>;
  bool begun = false;
  const std::function<Next()> next = [&]() -> Next {
    if (!std::exchange(begun, true)) return first;
    ASSIGN_OR_RETURN(std::string chunk, next_chunk());
    if (chunk.empty()) return std::nullopt;
    v1::UploadDatasetRequest message;
    message.set_data(std::move(chunk));
    return message;
  };
  return caller_->Send(&v1::Datasets::Stub::UploadDataset, next);
}

absl::StatusOr<v1::Dataset> Connection::GetDataset(const v1::GetDatasetRequest& request) {
  return caller_->Call(&v1::Datasets::Stub::GetDataset, request,
                       request.verify() ? kLong : CallOptions{});
}

absl::Status Connection::DownloadDataset(const v1::DownloadDatasetRequest& request,
                                         const OnMessage<v1::DatasetChunk>& on_chunk) {
  return caller_->Stream(&v1::Datasets::Stub::DownloadDataset, request, on_chunk);
}

absl::StatusOr<v1::PartialUpload> Connection::GetUpload(const v1::GetUploadRequest& request) {
  return caller_->Call(&v1::Datasets::Stub::GetUpload, request);
}

absl::StatusOr<v1::ListDatasetsResponse> Connection::ListDatasets(
    const v1::ListDatasetsRequest& request) {
  return caller_->Call(&v1::Datasets::Stub::ListDatasets, request);
}

absl::Status Connection::DeleteDataset(const v1::DeleteDatasetRequest& request) {
  return caller_->Call(&v1::Datasets::Stub::DeleteDataset, request, kOnce).status();
}

absl::StatusOr<v1::ListArtifactsResponse> Connection::ListArtifacts(
    const v1::ListArtifactsRequest& request) {
  return caller_->Call(&v1::Artifacts::Stub::ListArtifacts, request);
}

absl::Status Connection::ReadArtifact(const v1::ReadArtifactRequest& request,
                                      const OnMessage<v1::ArtifactChunk>& on_chunk) {
  return caller_->Stream(&v1::Artifacts::Stub::ReadArtifact, request, on_chunk);
}

absl::Status Connection::Export(const v1::ExportRequest& request,
                                const OnMessage<v1::FileChunk>& on_chunk) {
  return caller_->Stream(&v1::Reports::Stub::Export, request, on_chunk);
}

absl::Status Connection::RenderReport(const v1::RenderReportRequest& request,
                                      const OnMessage<v1::FileChunk>& on_chunk) {
  return caller_->Stream(&v1::Reports::Stub::RenderReport, request, on_chunk);
}

absl::Status Connection::Generate(const v1::GenerateRequest& request,
                                  const OnMessage<v1::GenerateResponse>& on_message) {
  return caller_->Stream(&v1::Models::Stub::Generate, request, on_message);
}

absl::StatusOr<v1::Model> Connection::UploadModel(
    const std::function<absl::StatusOr<std::optional<v1::UploadModelRequest>>()>& next) {
  return caller_->Send(&v1::Models::Stub::UploadModel, next);
}

absl::StatusOr<v1::Model> Connection::GetModel(const v1::GetModelRequest& request) {
  return caller_->Call(&v1::Models::Stub::GetModel, request);
}

absl::StatusOr<v1::ListModelsResponse> Connection::ListModels(
    const v1::ListModelsRequest& request) {
  return caller_->Call(&v1::Models::Stub::ListModels, request);
}

absl::Status Connection::DeleteModel(const v1::DeleteModelRequest& request) {
  return caller_->Call(&v1::Models::Stub::DeleteModel, request, kOnce).status();
}

absl::Status Connection::ExportModel(const v1::ExportModelRequest& request,
                                     const OnMessage<v1::FileChunk>& on_chunk) {
  return caller_->Stream(&v1::Models::Stub::ExportModel, request, on_chunk);
}

absl::StatusOr<v1::RenderTableResponse> Connection::RenderTable(
    const v1::RenderTableRequest& request) {
  return caller_->Call(&v1::Reports::Stub::RenderTable, request, kLong);
}

absl::StatusOr<v1::RenderFigureResponse> Connection::RenderFigure(
    const v1::RenderFigureRequest& request) {
  return caller_->Call(&v1::Reports::Stub::RenderFigure, request, kLong);
}

absl::StatusOr<v1::CreateAnalysisResponse> Connection::CreateAnalysis(
    const v1::CreateAnalysisRequest& request) {
  // May be repeated: of equal ones there is one.
  return caller_->Call(&v1::Analyses::Stub::CreateAnalysis, request);
}

absl::StatusOr<v1::Analysis> Connection::GetAnalysis(const v1::GetAnalysisRequest& request) {
  return caller_->Call(&v1::Analyses::Stub::GetAnalysis, request);
}

absl::StatusOr<v1::ListAnalysesResponse> Connection::ListAnalyses(
    const v1::ListAnalysesRequest& request) {
  return caller_->Call(&v1::Analyses::Stub::ListAnalyses, request);
}

absl::StatusOr<v1::Analysis> Connection::CancelAnalysis(const v1::CancelAnalysisRequest& request) {
  return caller_->Call(&v1::Analyses::Stub::CancelAnalysis, request);
}

absl::Status Connection::DeleteAnalysis(const v1::DeleteAnalysisRequest& request) {
  return caller_->Call(&v1::Analyses::Stub::DeleteAnalysis, request, kOnce).status();
}

absl::Status Connection::WatchAnalysis(const v1::WatchAnalysisRequest& request,
                                       const OnMessage<v1::Analysis>& on_change) {
  return caller_->Stream(&v1::Analyses::Stub::WatchAnalysis, request, on_change);
}

absl::Status Connection::ReadAnalysisArrays(const v1::ReadAnalysisArraysRequest& request,
                                            const OnMessage<v1::AnalysisArraysChunk>& on_chunk) {
  return caller_->Stream(&v1::Analyses::Stub::ReadAnalysisArrays, request, on_chunk);
}

void Connection::LimitCalls(absl::Duration timeout) { caller_->Limit(timeout); }

absl::StatusOr<v1::ListWorkersResponse> Connection::ListWorkersWithin(absl::Duration timeout) {
  return caller_->Call(&v1::Workers::Stub::ListWorkers, v1::ListWorkersRequest(), {timeout, false});
}

absl::StatusOr<v1::ListWorkersResponse> Connection::ListWorkers(
    const v1::ListWorkersRequest& request) {
  return caller_->Call(&v1::Workers::Stub::ListWorkers, request);
}

absl::StatusOr<v1::WhoAmIResponse> Connection::WhoAmI(const v1::WhoAmIRequest& request) {
  return caller_->Call(&v1::Admin::Stub::WhoAmI, request);
}

absl::StatusOr<v1::JoinFile> Connection::InitializeSharing(
    const v1::InitializeSharingRequest& request) {
  return caller_->Call(&v1::Admin::Stub::InitializeSharing, request, kOnce);
}

absl::StatusOr<v1::RenewCertificateResponse> Connection::RenewCertificate(
    const v1::RenewCertificateRequest& request) {
  return caller_->Call(&v1::Admin::Stub::RenewCertificate, request, kOnce);
}

absl::StatusOr<v1::User> Connection::CreateUser(const v1::CreateUserRequest& request) {
  return caller_->Call(&v1::Admin::Stub::CreateUser, request, kOnce);
}

absl::StatusOr<v1::ListUsersResponse> Connection::ListUsers(const v1::ListUsersRequest& request) {
  return caller_->Call(&v1::Admin::Stub::ListUsers, request);
}

absl::StatusOr<v1::User> Connection::UpdateUser(const v1::UpdateUserRequest& request) {
  return caller_->Call(&v1::Admin::Stub::UpdateUser, request);
}

absl::StatusOr<v1::User> Connection::SetQuota(const v1::SetQuotaRequest& request) {
  return caller_->Call(&v1::Admin::Stub::SetQuota, request);
}

absl::Status Connection::DeleteUser(const v1::DeleteUserRequest& request) {
  return caller_->Call(&v1::Admin::Stub::DeleteUser, request, kOnce).status();
}

absl::StatusOr<v1::CreateTokenResponse> Connection::CreateToken(
    const v1::CreateTokenRequest& request) {
  return caller_->Call(&v1::Admin::Stub::CreateToken, request, kOnce);
}

absl::StatusOr<v1::ListTokensResponse> Connection::ListTokens(
    const v1::ListTokensRequest& request) {
  return caller_->Call(&v1::Admin::Stub::ListTokens, request);
}

absl::StatusOr<v1::Token> Connection::RevokeToken(const v1::RevokeTokenRequest& request) {
  return caller_->Call(&v1::Admin::Stub::RevokeToken, request);
}

absl::StatusOr<v1::ListAuditResponse> Connection::ListAudit(const v1::ListAuditRequest& request) {
  return caller_->Call(&v1::Admin::Stub::ListAudit, request);
}

}  // namespace ablate::client
