#include "server/service/server.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "grpc/health/v1/health.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_interceptor.h"
#include "server/lookup/errors.h"
#include "server/rpc/authenticator.h"
#include "server/rpc/identity.h"
#include "server/service/run_fields.h"
#include "server/submit/analysis_planner.h"

namespace ablate::service {
namespace {

// For the blobs of workers, so that no client's calls can delay them.
constexpr size_t kWorkerThreads = 4;
constexpr size_t kMaxWaitingTransfers = 1'024;
// For calls in progress to end by themselves. Afterwards calls are cancelled, also those of
// watchers that a busy machine has not let reconnect yet.
constexpr std::chrono::seconds kShutdownTimeout{3};
constexpr size_t kMaxSocketPathBytes = 107;
constexpr int kMaxCallsPerConnection = 1'024;
constexpr int kMinPingMillis = 10'000;
// Silent peers, gone or stopped: their connection and streams end after both times.
constexpr int kPingAfterMillis = 60'000;
constexpr int kPingTimeoutMillis = 20'000;

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "can't listen on ", path,
        ": a file exists there that isn't a socket. Remove it, or use another folder"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("can't listen on ", path, ": can't remove the old socket"));
  }
  return absl::OkStatus();
}

// Returns the path that gRPC reads from an address.
std::string Unescape(absl::string_view text) {
  std::string path;
  while (!text.empty()) {
    const bool escaped = text.size() >= 3 && text[0] == '%' && absl::ascii_isxdigit(text[1]) &&
                         absl::ascii_isxdigit(text[2]);
    path += escaped ? absl::HexStringToBytes(text.substr(1, 2)) : std::string(1, text[0]);
    text.remove_prefix(escaped ? 3 : 1);
  }
  return path;
}

absl::Status PrepareSocket(const std::string& address) {
  absl::string_view rest = address;
  const bool is_unix = absl::ConsumePrefix(&rest, "unix:");
  const std::string path = Unescape(rest);
  if (!is_unix || path.empty() || path.size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("can't listen on ", address,
                                                   "; expected unix:PATH with a PATH of at most ",
                                                   kMaxSocketPathBytes, " bytes"));
  }
  return RemoveStaleSocket(path);
}

using grpc::experimental::InterceptionHookPoints;

// gRPC's callback API answers a request that it can't parse as if the method did not exist, with
// UNIMPLEMENTED and no message. This class makes it INVALID_ARGUMENT with a sentence.
class MalformedExplainer final : public grpc::experimental::Interceptor {
 public:
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus(lookup::ToGrpc(lookup::MalformedRequest()));
      }
    }
    methods->Proceed();
  }
};

class MalformedExplainers final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    // Methods that don't exist appear as bidirectional; bidirectional ones that exist have no first
    // request to parse.
    if (info->type() == grpc::experimental::ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    return new MalformedExplainer;
  }
};

// Adds `services` (which must outlive the server), health and reflection. Don't call it from two
// threads at once.
void AddServices(const std::vector<std::unique_ptr<grpc::Service>>& services,
                 grpc::ServerBuilder* builder) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // gRPC serves health without its descriptors; reflection finds them once they are linked in.
  grpc::health::v1::HealthCheckRequest::descriptor();
  for (const std::unique_ptr<grpc::Service>& service : services) {
    builder->RegisterService(service.get());
  }
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<MalformedExplainers>());
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
}

// Starts a server on `address`, "unix:PATH" (a URI: %XX is a byte of the path). Removes a socket
// that an earlier process left there: the caller holds the lock of the data folder, so nobody else
// listens. INVALID_ARGUMENT for an invalid address; FAILED_PRECONDITION if PATH isn't a socket;
// UNAVAILABLE if listening fails.
absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(
    const std::string& address, int max_message_bytes,
    const std::vector<std::unique_ptr<grpc::Service>>& services) {
  RETURN_IF_ERROR(PrepareSocket(address));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  AddServices(services, &builder);
  builder.SetMaxReceiveMessageSize(max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("can't listen on ", address));
  }
  server->GetHealthCheckService()->SetServingStatus(true);
  return server;
}

void ShutDown(grpc::Server* server, std::chrono::seconds timeout) {
  server->GetHealthCheckService()->Shutdown();
  server->Shutdown(std::chrono::system_clock::now() + timeout);
}

}  // namespace

Server::Server(const ServerOptions& options, storage::Store* store,
               schedule::SchedulerThread* scheduler)
    : check_interval_(
          std::clamp(options.pace.timeout / 60, absl::Milliseconds(1), absl::Seconds(1))),
      pool_(lookup::kAnsweringThreads, lookup::kMaxWaitingCalls),
      worker_pool_(kWorkerThreads, kMaxWaitingTransfers),
      comparing_(lookup::kComparingThreads, lookup::kMaxWaitingCalls),
      submissions_(lookup::kExpandingThreads, lookup::kMaxWaitingCalls) {
  backend_.store = workers_.store = store;
  backend_.scheduler = workers_.scheduler = scheduler;
  backend_.pool = &pool_;
  workers_.pool = &worker_pool_;
  backend_.comparing = &comparing_;
  backend_.submissions = &submissions_;
  backend_.owner = options.owner;
  backend_.sql_program = options.sql_program;
  backend_.sql_processor_time = options.sql_processor_time;
  backend_.sharing = options.sharing;
  backend_.pace = workers_.pace = options.pace;
  workers_.find_user =
      [this](const grpc::ServerContextBase& context) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(auto caller, backend_.FindCaller(context));
    return rpc::IsLocal(caller) ? "" : std::move(caller.user);
  };
  analyses_ = std::make_unique<analysis::AnalysisRunner>(
      store, &scheduler->analyses(), &workers_.pins, &backend_.analysis_watches);
  backend_.analyses = workers_.analyses = analyses_.get();
  planner_ = std::make_unique<submit::AnalysisPlanner>(
      store, [this](const v1::CreateAnalysisRequest& request, const std::string& owner,
                    const std::string& experiment) {
        v1::CreateAnalysisResponse response;
        return CreateAnalysis(backend_, request, {backend_.store, {owner}}, experiment, &response);
      });
  backend_.planner = planner_.get();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      storage::Store* store,
                                                      schedule::SchedulerThread* scheduler) {
  std::unique_ptr<Server> server(new Server(options, store, scheduler));
  RETURN_IF_ERROR(server->ListenOnBoth(options));
  server->describing_ = std::jthread(
      [store](const std::stop_token& stop) { DescribeStoredExperiments(store, stop); });
  return server;
}

Server::~Server() {
  if (backend_.sharing != nullptr) {
    backend_.sharing->OnTokensEnd(nullptr);
    backend_.sharing->OnRenewal(nullptr);
  }
  StopClients();
  if (worker_server_ == nullptr) return;
  workers_.streams.StopAll();
  workers_.transfers.StopAll();
  ShutDown(worker_server_.get(), kShutdownTimeout);
}

std::vector<std::unique_ptr<grpc::Service>> Server::MakeClientServices() {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(MakeExperimentsService(&backend_));
  services.push_back(MakeRunsService(&backend_));
  services.push_back(MakeMetricsService(&backend_));
  services.push_back(MakeDatasetsService(&backend_));
  services.push_back(MakeArtifactsService(&backend_));
  services.push_back(MakeAnalysesService(&backend_));
  services.push_back(MakeReportsService(&backend_));
  services.push_back(MakeModelsService(&backend_));
  services.push_back(MakeWorkersService(&backend_));
  services.push_back(MakeQueueService(&backend_));
  if (backend_.sharing != nullptr) services.push_back(MakeAdminService(&backend_));
  return services;
}

void Server::KnowUsers() {
  const auto find_caller = [this](const grpc::ServerContextBase& context) {
    return backend_.FindCaller(context);
  };
  for (rpc::LiveStreams* streams : StreamsWithTokens()) streams->set_find_caller(find_caller);
  for (rpc::WorkPool* pool : {&pool_, &comparing_, &submissions_}) {
    pool->set_find_user([find_caller](const grpc::ServerContextBase& context) {
      // A caller whose token has ended meanwhile counts as nobody for the rest of the call.
      auto caller = find_caller(context);
      return caller.ok() ? std::move(caller->user) : std::string();
    });
  }
}

absl::Status Server::ListenInPublic(const ServerOptions& options) {
  if (backend_.sharing == nullptr) {
    return absl::FailedPreconditionError(
        "this server isn't shared. Run `ablate admin init HOST:PORT` first");
  }
  KeepCertificate();
  ASSIGN_OR_RETURN(const auto tls, certificate_->Load());
  storage::AccessStore* const access = &backend_.sharing->store();
  expired_until_ = absl::Now();
  backend_.sharing->OnTokensEnd([this](const std::set<std::string>& tokens) {
    EndTokens(tokens, absl::UnauthenticatedError(
                          "the token was revoked, or its user's role has changed. Log in again"));
  });
  net::PublicPortOptions port;
  port.address = options.public_address;
  port.certificate_chain = tls.server.certificate;
  port.private_key = tls.server.key;
  authentication_log_ = std::make_unique<net::AuthenticationLog>(access);
  const rpc::Authenticator authenticator(access, authentication_log_.get(),
                                         [] { return absl::Now(); });
  port.authenticate = [authenticator](const net::CallMetadata& metadata,
                                      const std::string& address) {
    return authenticator.Check(metadata, address);
  };
  port.on_hang_ups = [](const std::string& what) { spdlog::info("{}", what); };
  ASSIGN_OR_RETURN(public_port_, net::PublicPort::Listen(port));
  public_services_ = MakeClientServices();
  public_services_.push_back(MakeWorkerChannelService(&workers_));
  public_services_.push_back(MakeScalerService(&backend_));
  grpc::ServerBuilder builder;
  AddServices(public_services_, &builder);
  builder.SetMaxReceiveMessageSize(lookup::kMaxRequestBytes);
  public_port_->Prepare(&builder);
  public_server_ = builder.BuildAndStart();
  if (public_server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("can't serve ", options.public_address));
  }
  public_server_->GetHealthCheckService()->SetServingStatus(true);
  public_port_->Serve();
  backend_.sharing->OnRenewal([this] { certificate_->Reload(); });
  return absl::OkStatus();
}

void Server::KeepCertificate() {
  access::CertificateKeeperOptions keeper;
  keeper.now = [] { return absl::Now(); };
  keeper.elapsed = [] {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  };
  keeper.use = [this](const access::ServerTls& tls) {
    return public_port_->UseCertificate(tls.server.certificate, tls.server.key);
  };
  keeper.log = [](const std::string& what) { spdlog::info("{}", what); };
  keeper.warn = [](const std::string& what) { spdlog::warn("{}", what); };
  certificate_ = std::make_unique<access::CertificateKeeper>(backend_.sharing, std::move(keeper));
}

void Server::CheckCertificate() {
  if (certificate_ == nullptr || !certificate_->due()) return;
  pool_.Post([this] { certificate_->Check(); });
}

void Server::EndTokens(const std::set<std::string>& tokens, const absl::Status& why) {
  for (rpc::LiveStreams* streams : StreamsWithTokens()) streams->EndTokens(tokens, why);
}

std::vector<rpc::LiveStreams*> Server::StreamsWithTokens() {
  const auto of_clients = backend_.AllStreams();
  std::vector<rpc::LiveStreams*> streams(of_clients.begin(), of_clients.end());
  streams.push_back(&workers_.streams);
  streams.push_back(&workers_.transfers);
  return streams;
}

void Server::EndExpiredTokens() {
  if (expired_until_ == absl::Time()) return;
  const absl::Time now = absl::Now();
  const std::vector<std::string> expired =
      backend_.sharing->store().ExpiredBetween(expired_until_, now);
  expired_until_ = now;
  if (expired.empty()) return;
  EndTokens({expired.begin(), expired.end()}, absl::UnauthenticatedError("the token has expired"));
}

void Server::WriteAuthenticationLog() {
  if (authentication_log_ == nullptr || writes_authentication_log_.exchange(true)) return;
  pool_.Post([this] {
    const absl::Status written = authentication_log_->Write(absl::Now());
    if (!written.ok()) spdlog::warn("the audit log lacks what was refused: {}", written.ToString());
    writes_authentication_log_ = false;
  });
}

absl::Status Server::ListenOnBoth(const ServerOptions& options) {
  if (!options.public_address.empty()) KnowUsers();
  services_ = MakeClientServices();
  worker_services_.push_back(MakeWorkerChannelService(&workers_));
  ASSIGN_OR_RETURN(client_server_,
                   Listen(options.client_address, lookup::kMaxRequestBytes, services_));
  ASSIGN_OR_RETURN(worker_server_, Listen(options.worker_address, lookup::kMaxWorkerMessageBytes,
                                          worker_services_));
  if (!options.public_address.empty()) {
    if (absl::Status shared = ListenInPublic(options); !shared.ok()) return shared;
  }
  if (options.metrics_port >= 0) {
    ASSIGN_OR_RETURN(metrics_port_,
                     MetricsPort::Listen(options.metrics_port, backend_.store, backend_.scheduler));
  }
  analyses_->Start();
  planner_->Start();
  CheckLater();
  return absl::OkStatus();
}

void Server::StopClients() {
  if (client_server_ == nullptr) return;
  metrics_port_ = nullptr;
  if (public_port_ != nullptr) public_port_->StopAccepting();
  const auto streams = backend_.AllStreams();
  for (rpc::LiveStreams* each : streams) each->StopAll();
  planner_->Stop();
  analyses_->Stop();
  backend_.scheduler->analyses().Stop();
  // While gRPC waits for calls it cancels new ones, also of watchers that reconnect at once. Here
  // those get the shutdown error themselves, so that gRPC has nothing to wait for and disconnects.
  const auto deadline = std::chrono::steady_clock::now() + kShutdownTimeout;
  for (rpc::LiveStreams* each : streams) each->WaitUntilGone(deadline);
  pool_.WaitUntilIdle(deadline);
  comparing_.WaitUntilIdle(deadline);
  submissions_.WaitUntilIdle(deadline);
  ShutDown(client_server_.get(), std::chrono::seconds(0));
  if (public_server_ != nullptr) ShutDown(public_server_.get(), std::chrono::seconds(0));
}

// A group of writes that changed nothing, or found no room, takes no new number.
void Server::Notify(uint64_t change) {
  const bool stall_changed = StallChanged();
  const bool changed = notified_.exchange(change) != change;
  if (changed || stall_changed) backend_.watches.WakeAll();
  if (changed) planner_->Notify();
  if (changed) backend_.analysis_watches.WakeAll();  // also of those removed with their runs
}

bool Server::StallChanged() {
  const bool stalled = !backend_.store->stalled().empty();
  return stalled_.exchange(stalled) != stalled;
}

void Server::CheckLater() {
  worker_pool_.PostAfter(check_interval_, [this] {
    const absl::Duration now = MonotonicNow();
    for (rpc::LiveStreams* streams : backend_.AllStreams()) streams->CheckPaces(now);
    workers_.streams.CheckPaces(now);
    workers_.transfers.CheckPaces(now);
    if (StallChanged()) backend_.watches.WakeAll();
    EndExpiredTokens();
    WriteAuthenticationLog();
    CheckCertificate();
    CheckLater();
  });
}

}  // namespace ablate::service
