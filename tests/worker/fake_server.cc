// Implements the fake server's gRPC side.
#include "tests/worker/fake_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "ablate/worker/v1/worker.grpc.pb.h"
#include "absl/strings/str_cat.h"

namespace ablate::worker {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ToWorker, v1::FromWorker>;

v1::ToWorker AckOf(const std::string& lease, uint64_t seq) {
  v1::ToWorker message;
  message.mutable_ack()->set_lease(lease);
  message.mutable_ack()->set_seq(seq);
  return message;
}

}  // namespace

class FakeServer::Service : public v1::WorkerChannel::Service {
 public:
  explicit Service(FakeServer* server) : server_(server) {}

  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override {
    v1::FromWorker message;
    while (stream->Read(&message)) {
      MutexLock lock(&server_->mutex_);
      ServerState& state = server_->state_;
      if (message.has_hello()) {
        Welcome(state, message.hello(), context, stream);
      } else if (message.has_heartbeat()) {
        state.heartbeats.push_back(message.heartbeat());
      } else if (message.has_event()) {
        Apply(state, message.event(), stream);
      } else {
        state.analyses.push_back(message);
      }
      server_->changed_.SignalAll();
    }
    MutexLock lock(&server_->mutex_);
    if (stream_ == stream) {
      stream_ = nullptr;
      context_ = nullptr;
      server_->state_.attached = false;
    }
    server_->changed_.SignalAll();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the stream was broken");
  }

  grpc::Status ReadBlob(grpc::ServerContext*, const v1::ReadBlobRequest* request,
                        grpc::ServerWriter<v1::BlobChunk>* writer) override {
    std::string bytes;
    {
      MutexLock lock(&server_->mutex_);
      ++server_->state_.reads;
      server_->changed_.SignalAll();
      if (const int code = TakeError(server_->state_.read_errors); code != 0) return Error(code);
      const auto found = server_->state_.blobs.find(request->sha256());
      if (found == server_->state_.blobs.end()) return Error(grpc::StatusCode::NOT_FOUND);
      bytes = found->second;
    }
    v1::BlobChunk chunk;
    for (size_t at = 0; at < bytes.size(); at += kChunk) {
      chunk.set_data(bytes.substr(at, kChunk));
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  }

  grpc::Status WriteBlob(grpc::ServerContext*, grpc::ServerReader<v1::WriteBlobRequest>* reader,
                         v1::WriteBlobResponse* response) override {
    std::string bytes;
    v1::WriteBlobRequest request;
    while (reader->Read(&request)) {
      if (!request.sha256().empty()) response->set_sha256(request.sha256());
      bytes += request.data();
    }
    MutexLock lock(&server_->mutex_);
    if (const int code = TakeError(server_->state_.write_errors); code != 0) return Error(code);
    response->set_bytes(bytes.size());
    server_->state_.blobs[response->sha256()] = std::move(bytes);
    server_->changed_.SignalAll();
    return grpc::Status::OK;
  }

  // The server's lock must be held.
  void Send(const v1::ToWorker& message) {
    if (stream_ != nullptr) stream_->Write(message);
  }
  void Break() {
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  static constexpr size_t kChunk = 1000;

  static int TakeError(std::vector<int>& errors) {
    if (errors.empty()) return 0;
    const int code = errors.front();
    errors.erase(errors.begin());
    return code;
  }
  static grpc::Status Error(int code) {
    return grpc::Status(static_cast<grpc::StatusCode>(code), "as the test asked");
  }

  void Welcome(ServerState& state, const v1::Hello& hello, grpc::ServerContext* context,
               Stream* stream) {
    state.hellos.push_back(hello);
    state.attached = true;
    stream_ = stream;
    context_ = context;
    v1::ToWorker message;
    message.mutable_welcome()->set_heartbeat_ms(state.heartbeat_ms);
    message.mutable_welcome()->set_grace_ms(state.grace_ms);
    stream->Write(message);
    for (const v1::HeldLease& held : hello.held()) {
      v1::Verdict& verdict = *message.mutable_verdict();
      verdict.set_lease(held.lease());
      verdict.set_drop(state.dropped.count(held.lease()) > 0);
      verdict.set_acked(state.applied[held.lease()]);
      verdict.set_credit_bytes(state.credit_bytes);
      stream->Write(message);
    }
  }

  void Apply(ServerState& state, const v1::Event& event, Stream* stream) {
    uint64_t& last = state.applied[event.lease()];
    if (event.seq() > last + 1) ++state.gaps;
    if (event.seq() <= last) ++state.repeated_events;
    if (event.seq() == last + 1) {
      ++last;
      state.events.push_back(event);
    }
    if (state.hold_acks) {
      state.to_be_acked[event.lease()] = last;
    } else {
      stream->Write(AckOf(event.lease(), last));
    }
  }

  FakeServer* const server_;
  // The attached worker's; guarded by the server's lock.
  Stream* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;
};

FakeServer::FakeServer(std::string socket)
    : socket_(std::move(socket)), service_(std::make_unique<Service>(this)) {
  Start();
}

FakeServer::~FakeServer() { Stop(); }

std::string FakeServer::address() const { return absl::StrCat("unix:", socket_); }

void FakeServer::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr) << "cannot listen on " << address();
}

void FakeServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakeServer::Change(const std::function<void(ServerState&)>& change) {
  MutexLock lock(&mutex_);
  change(state_);
}

ServerState FakeServer::WaitUntil(const std::function<bool(const ServerState&)>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  MutexLock lock(&mutex_);
  while (!holds(state_)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      ADD_FAILURE() << "what was waited for did not come";
      break;
    }
    changed_.WaitFor(&mutex_, left);
  }
  return state_;
}

ServerState FakeServer::state() {
  MutexLock lock(&mutex_);
  return state_;
}

void FakeServer::Send(const v1::ToWorker& message) {
  WaitUntil([](const ServerState& state) { return state.attached; });
  MutexLock lock(&mutex_);
  service_->Send(message);
}

void FakeServer::Grant(const std::vector<v1::GrantedRun>& runs) {
  for (const v1::GrantedRun& run : runs) {
    v1::ToWorker message;
    message.mutable_grant()->set_lease(run.run());
    message.mutable_grant()->set_credit_bytes(state().credit_bytes);
    *message.mutable_grant()->mutable_run() = run;
    Send(message);
  }
}

void FakeServer::Cancel(const std::string& run) {
  v1::ToWorker message;
  message.mutable_cancel()->set_lease(run);
  Send(message);
}

void FakeServer::Save(const std::string& run) {
  v1::ToWorker message;
  message.mutable_save()->set_lease(run);
  Send(message);
}

void FakeServer::Drain() {
  v1::ToWorker message;
  message.mutable_drain();
  Send(message);
}

void FakeServer::ReleaseAcks() {
  MutexLock lock(&mutex_);
  state_.hold_acks = false;
  for (const auto& [lease, seq] : state_.to_be_acked) service_->Send(AckOf(lease, seq));
  state_.to_be_acked.clear();
}

void FakeServer::BreakStream() {
  MutexLock lock(&mutex_);
  service_->Break();
}

std::vector<v1::Event> EventsOf(const ServerState& state, const std::string& run) {
  std::vector<v1::Event> events;
  for (const v1::Event& event : state.events) {
    if (event.lease() == run) events.push_back(event);
  }
  return events;
}

bool Has(const ServerState& state, const std::string& run, v1::Event::KindCase kind) {
  for (const v1::Event& event : state.events) {
    if (event.lease() == run && event.kind_case() == kind) return true;
  }
  return false;
}

std::vector<std::pair<uint32_t, double>> Series(const ServerState& state, const std::string& run,
                                                const std::string& key) {
  std::vector<std::pair<uint32_t, double>> series;
  for (const v1::Event& event : EventsOf(state, run)) {
    for (const v1::Column& column : event.points().columns()) {
      if (column.key() != key) continue;
      for (int i = 0; i < column.steps_size(); ++i) {
        series.emplace_back(column.steps(i), column.values(i));
      }
    }
  }
  return series;
}

}  // namespace ablate::worker
