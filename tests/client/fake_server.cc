// A server in this process whose answers a test writes as functions.
#include "tests/client/fake_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/method_handler.h>

#include <algorithm>
#include <list>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "client/connection.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
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

Status GetExperiment(Answers* answers, ServerContext* context,
                     const v1::GetExperimentRequest* request, v1::Experiment* response) {
  if (!answers->newest_of.empty()) context->AddTrailingMetadata(kNewestOf, answers->newest_of);
  return Run(answers->get, request, response);
}

Status ListRuns(Answers* answers, ServerContext*, const v1::ListRunsRequest* request,
                v1::ListRunsResponse* response) {
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

Status WhoAmI(Answers* answers, ServerContext* context, const v1::WhoAmIRequest* request,
              v1::WhoAmIResponse* response) {
  const auto found = context->client_metadata().find("authorization");
  const bool given = found != context->client_metadata().end();
  answers->authorization =
      given ? std::string(found->second.data(), found->second.size()) : std::string();
  return Run(answers->who, request, response);
}

using grpc::internal::RpcMethod;

// The methods of all services.
class Methods : public grpc::Service {
 public:
  explicit Methods(Answers* answers) : answers_(answers) {
    Add(kCreateExperiment, &Answers::create);
    Add(kGetExperiment, GetExperiment);
    Add(kListExperiments, &Answers::list);
    Add(kDiffExperiments, &Answers::diff);
    Add(kUpdateExperiment, &Answers::update);
    Add(kCancelExperiment, &Answers::cancel);
    Add(kDeleteExperiment, &Answers::remove);
    AddStream(kWatchExperiment, &Answers::watch);
    Add(kGetRun, &Answers::run);
    Add(kListRuns, ListRuns);
    Add(kListRunEvents, &Answers::run_events);
    Add(kReadRunLog, &Answers::run_log);
    Add(kListMetrics, &Answers::metrics);
    AddStream(kQueryMetrics, &Answers::query);
    Add(kCompare, &Answers::compare);
    AddStream(kSql, &Answers::sql);
    AddUpload(kImport, &Answers::import);
    AddUpload(kUploadDataset, &Answers::upload);
    Add(kGetUpload, &Answers::get_upload);
    Add(kGetDataset, &Answers::dataset);
    AddStream(kDownloadDataset, &Answers::download);
    Add(kListDatasets, &Answers::datasets);
    Add(kDeleteDataset, &Answers::remove_dataset);
    Add(kListArtifacts, &Answers::artifacts);
    AddStream(kReadArtifact, &Answers::read_artifact);
    Add(kRenderTable, &Answers::table);
    Add(kRenderFigure, &Answers::figure);
    AddStream(kRenderReport, &Answers::report);
    AddStream(kExport, &Answers::export_points);
    AddStream(kGenerate, &Answers::generate);
    AddUpload(kUploadModel, &Answers::upload_model);
    Add(kGetModel, &Answers::model);
    Add(kListModels, &Answers::models);
    Add(kDeleteModel, &Answers::remove_model);
    AddStream(kExportModel, &Answers::export_model);
    Add(kCreateAnalysis, &Answers::create_analysis);
    Add(kGetAnalysis, &Answers::analysis);
    Add(kListAnalyses, &Answers::analyses);
    Add(kCancelAnalysis, &Answers::cancel_analysis);
    Add(kDeleteAnalysis, &Answers::remove_analysis);
    AddStream(kWatchAnalysis, &Answers::watch_analysis);
    AddStream(kReadAnalysisArrays, &Answers::read_arrays);
    Add(kListWorkers, &Answers::workers);
    Add(kWhoAmI, WhoAmI);
    Add(kInitializeSharing, &Answers::initialize);
    Add(kRenewCertificate, &Answers::renew);
    Add(kCreateUser, &Answers::create_user);
    Add(kListUsers, &Answers::users);
    Add(kUpdateUser, &Answers::update_user);
    Add(kSetQuota, &Answers::quota);
    Add(kDeleteUser, &Answers::remove_user);
    Add(kCreateToken, &Answers::create_token);
    Add(kListTokens, &Answers::tokens);
    Add(kRevokeToken, &Answers::revoke);
    Add(kListAudit, &Answers::audit);
  }

 private:
  template <typename Request, typename Response>
  using Handler = Status (*)(Answers*, ServerContext*, const Request*, Response*);

  template <typename Request, typename Response>
  void Add(const Rpc<Request, Response>& rpc, Handler<Request, Response> handler) {
    AddTyped<Request, Response>(
        RpcMethod::NORMAL_RPC, rpc.service,
        new grpc::internal::RpcMethodHandler<Answers, Request, Response>(handler, answers_));
  }

  template <typename Request, typename Response>
  void Add(const Rpc<Request, Response>& rpc, Answer<Request, Response> Answers::*answer) {
    const auto run = [answer](Answers* answers, ServerContext*, const Request* request,
                              Response* response) {
      return Run(answers->*answer, request, response);
    };
    AddTyped<Request, Response>(
        RpcMethod::NORMAL_RPC, rpc.service,
        new grpc::internal::RpcMethodHandler<Answers, Request, Response>(run, answers_));
  }

  template <typename Request, typename Message>
  void AddStream(const StreamRpc<Request, Message>&,
                 StreamAnswer<Request, Message> Answers::*answer) {
    const auto run = [answer](Answers* answers, ServerContext*, const Request* request,
                              ServerWriter<Message>* writer) {
      return Stream(answers->*answer, request, writer);
    };
    AddTyped<Request, Message>(
        RpcMethod::SERVER_STREAMING, nullptr,
        new grpc::internal::ServerStreamingHandler<Answers, Request, Message>(run, answers_));
  }

  template <typename Request, typename Response>
  void AddUpload(const UploadRpc<Request, Response>& rpc,
                 Answer<std::vector<Request>, Response> Answers::*answer) {
    const auto run = [answer](Answers* answers, ServerContext*, grpc::ServerReader<Request>* reader,
                              Response* response) {
      std::vector<Request> messages;
      Request message;
      while (reader->Read(&message)) messages.push_back(message);
      return Run(answers->*answer, &messages, response);
    };
    AddTyped<Request, Response>(
        RpcMethod::CLIENT_STREAMING, rpc.service,
        new grpc::internal::ClientStreamingHandler<Answers, Request, Response>(run, answers_));
  }

  // Checks the types of the client's table, too.
  template <typename Request, typename Response>
  void AddTyped(RpcMethod::RpcType type, const char* service,
                grpc::internal::MethodHandler* handler) {
    const std::string& path = paths_.emplace_back(PathOf(Request(), service));
    const auto* method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        absl::StrReplaceAll(path.substr(1), {{"/", "."}}));
    ASSERT_NE(method, nullptr) << path;
    EXPECT_EQ(method->input_type(), Request::descriptor()) << path;
    EXPECT_EQ(method->output_type(), Response::descriptor()) << path;
    EXPECT_EQ(method->client_streaming(), type == RpcMethod::CLIENT_STREAMING) << path;
    EXPECT_EQ(method->server_streaming(), type == RpcMethod::SERVER_STREAMING) << path;
    AddMethod(new grpc::internal::RpcServiceMethod(path.c_str(), type, handler));
  }

  Answers* const answers_;
  std::list<std::string> paths_;  // gRPC keeps pointers to them
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
  explicit Services(Answers* answers) : methods(answers) {}

  Methods methods;
  std::unique_ptr<grpc::Server> server;

  // `port` is the one that was taken, where the address names none.
  void Start(const std::string& address, const std::shared_ptr<grpc::ServerCredentials>& how,
             int* port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, how, port);
    builder.RegisterService(&methods);
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
