#include "server/worker/blob_channel.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "ablate/worker/v1/worker.grpc.pb.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/worker/channel.h"

namespace ablate::worker {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr int kHashAttempts = 3;

// Returns true for errors that a retry would meet again. Any other error means that the server is
// unreachable, restarting or out of disk space.
bool IsRefusal(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// Returns true for a fault of the server, which may be temporary or permanent.
bool IsServerError(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown || code == absl::StatusCode::kInternal;
}

// A call in progress, cancelled when its run is abandoned.
class Call {
 public:
  Call(const join::ServerAddress& server, RunControl& control) : control_(control) {
    join::AddMetadata(server, &context_);
    control_.BeginCall([this] { context_.TryCancel(); });
  }
  ~Call() { control_.EndCall(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  grpc::ClientContext* context() { return &context_; }

 private:
  RunControl& control_;
  grpc::ClientContext context_;
};

class GrpcBlobChannel : public BlobChannel {
 public:
  GrpcBlobChannel(const join::ServerAddress& server, std::string folder, BlobRetries retries)
      : server_(server),
        folder_(std::move(folder)),
        stub_(v1::WorkerChannel::NewStub(OpenChannel(server))),
        retries_(retries) {}

  absl::StatusOr<SharedBytes> Read(const std::string& grant, const std::string& sha256,
                                   RunControl& control) override {
    if (!folder_.empty()) {
      // The server keeps the file while this process may read the blob, and never changes it. If it
      // can't be read, the server says why.
      auto bytes = SharedBytes::OfFile(absl::StrCat(folder_, "/", sha256));
      if (bytes.ok() && Sha256Hex(bytes->view()) == sha256) return bytes;
    }
    for (int attempt = 0; attempt < kHashAttempts; ++attempt) {
      std::string bytes;
      RETURN_IF_ERROR(Persist(control, [&] { return ReadOnce(grant, sha256, control, &bytes); }));
      if (Sha256Hex(bytes) == sha256) return SharedBytes(std::move(bytes));
    }
    return absl::DataLossError(absl::StrCat("blob ", sha256, " arrives with other bytes"));
  }

  absl::StatusOr<std::string> Write(const std::string& lease, absl::string_view bytes,
                                    RunControl& control) override {
    const std::string sha256 = Sha256Hex(bytes);
    RETURN_IF_ERROR(Persist(control, [&] { return WriteOnce(lease, sha256, bytes, control); }));
    return sha256;
  }

 private:
  template <typename Attempt>
  absl::Status Persist(RunControl& control, Attempt attempt) const {
    const ServerWait waiting(control);
    Backoff backoff(retries_.first_wait, retries_.longest_wait);
    absl::StatusCode logged = absl::StatusCode::kOk;
    int server_errors = 0;
    while (true) {
      absl::Status status = attempt();
      if (control.abandoned()) return absl::CancelledError("the run was withdrawn");
      if (status.ok() || IsRefusal(status.code())) return status;
      server_errors = IsServerError(status.code()) ? server_errors + 1 : 0;
      if (server_errors >= retries_.max_server_errors) return status;
      if (status.code() != logged) {
        spdlog::warn("waiting for the server to take or give a blob: {}", status.ToString());
        logged = status.code();
      }
      control.Pause(backoff.Next());
    }
  }

  absl::Status ReadOnce(const std::string& grant, const std::string& sha256, RunControl& control,
                        std::string* bytes) {
    bytes->clear();
    Call call(server_, control);
    v1::ReadBlobRequest request;
    request.set_lease(grant);
    request.set_sha256(sha256);
    const auto reader = stub_->ReadBlob(call.context(), request);
    v1::BlobChunk chunk;
    while (reader->Read(&chunk)) bytes->append(chunk.data());
    return FromGrpc(reader->Finish());
  }

  absl::Status WriteOnce(const std::string& lease, const std::string& sha256,
                         absl::string_view bytes, RunControl& control) {
    Call call(server_, control);
    // Sends the start and the end of the call together with a message, because most blobs are one
    // message, and each separate packet wakes threads at both ends.
    call.context()->set_initial_metadata_corked(true);
    v1::WriteBlobResponse response;
    const auto writer = stub_->WriteBlob(call.context(), &response);
    v1::WriteBlobRequest request;
    request.set_lease(lease);
    request.set_sha256(sha256);
    // At least one message, because an empty blob also has a hash.
    bool more = true;
    for (size_t at = 0; more; at += kChunkBytes) {
      const absl::string_view piece = bytes.substr(at, kChunkBytes);
      request.set_data(piece.data(), piece.size());
      const bool last = at + kChunkBytes >= bytes.size();
      if (last) writer->WriteLast(request, grpc::WriteOptions());
      more = !last && writer->Write(request);
      request.clear_lease();
      request.clear_sha256();
    }
    return FromGrpc(writer->Finish());
  }

  const join::ServerAddress server_;
  const std::string folder_;  // of the server's blobs, or empty
  const std::unique_ptr<v1::WorkerChannel::Stub> stub_;
  const BlobRetries retries_;
};

}  // namespace

std::unique_ptr<BlobChannel> BlobChannel::Make(const join::ServerAddress& server,
                                               const std::string& folder, BlobRetries retries) {
  return std::make_unique<GrpcBlobChannel>(server, folder, retries);
}

}  // namespace ablate::worker
