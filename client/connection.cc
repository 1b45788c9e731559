#include "client/connection.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/join/channel.h"
#include "proto/join/tls_trouble.h"
#include "proto/metadata.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

using google::protobuf::Message;
using google::protobuf::MessageLite;
using grpc::internal::RpcMethod;

constexpr absl::Duration kRetryDelays[] = {absl::Milliseconds(100), absl::Milliseconds(400)};
// A response with 100,000 cells takes some 20 MB.
constexpr int kMaxMessageBytes = 128 << 20;

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

std::string PathOf(const google::protobuf::Message& request, const char* service) {
  const google::protobuf::Descriptor& type = *request.GetDescriptor();
  const std::string name = service != nullptr ? service : type.file()->service(0)->name();
  return absl::StrCat("/", type.file()->package(), ".", name, "/",
                      absl::StripSuffix(type.name(), "Request"));
}

Connection::Connection(const ServerAddress& server, Sleep sleep, OnNewestOf on_newest)
    : server_(server),
      sleep_(std::move(sleep)),
      on_newest_(std::move(on_newest)),
      channel_(MakeChannel(server)) {}

absl::Status Connection::CallPath(const std::string& path, CallOptions options,
                                  const Message& request, Message* response) {
  const RpcMethod method(path.c_str(), RpcMethod::NORMAL_RPC);
  if (limit_.has_value()) options = {*limit_, /*may_repeat=*/false};
  const auto* delay = std::begin(kRetryDelays);
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMicroseconds(options.timeout));
    join::AddMetadata(server_, &context);
    const grpc::Status called = grpc::internal::BlockingUnaryCall<MessageLite, MessageLite>(
        channel_.get(), method, &context, request, response);
    if (called.ok()) return Tell(context, options.only);
    const bool passes = called.error_code() == grpc::StatusCode::UNAVAILABLE || IsCutOff(called);
    const bool again = options.may_repeat && delay != std::end(kRetryDelays) && passes;
    if (!again && limit_.has_value()) return absl::UnavailableError("");
    if (!again) return ToStatus(called, server_);
    sleep_(*delay++);
  }
}

absl::Status Connection::ReadStream(const Message& request, Message* message,
                                    const std::function<absl::Status()>& on_message) {
  const std::string path = PathOf(request, nullptr);
  const RpcMethod method(path.c_str(), RpcMethod::SERVER_STREAMING);
  grpc::ClientContext context;
  join::AddMetadata(server_, &context);
  const auto read_by = [this](grpc::ClientContext* reading) {
    MutexLock lock(&mutex_);
    reading_ = reading;
    return !cancelled_;
  };
  if (!read_by(&context)) context.TryCancel();
  const std::unique_ptr<grpc::ClientReader<MessageLite>> reader(
      grpc::internal::ClientReaderFactory<MessageLite>::Create<MessageLite>(channel_.get(), method,
                                                                            &context, request));
  while (reader->Read(message)) {
    const absl::Status status = on_message();
    if (status.ok()) continue;
    context.TryCancel();
    reader->Finish();
    read_by(nullptr);
    return status;
  }
  const grpc::Status finished = reader->Finish();
  if (!read_by(nullptr)) return absl::CancelledError("cancelled by this program");
  Tell(context, /*only=*/false).IgnoreError();
  return ToStatus(finished, server_);
}

void Connection::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  if (reading_ != nullptr) reading_->TryCancel();
}

absl::Status Connection::WriteStream(const std::string& path,
                                     const std::function<absl::StatusOr<bool>()>& next,
                                     const Message& message, Message* response) {
  const RpcMethod method(path.c_str(), RpcMethod::CLIENT_STREAMING);
  grpc::ClientContext context;
  join::AddMetadata(server_, &context);
  const std::unique_ptr<grpc::ClientWriter<MessageLite>> writer(
      grpc::internal::ClientWriterFactory<MessageLite>::Create<MessageLite>(channel_.get(), method,
                                                                            &context, response));
  while (true) {
    const absl::StatusOr<bool> more = next();
    if (!more.ok()) {
      context.TryCancel();
      writer->Finish();
      return more.status();
    }
    // A failed write means that the server has answered already: it needs no more, or refuses.
    if (!*more || !writer->Write(message)) break;
  }
  writer->WritesDone();
  return ToStatus(writer->Finish(), server_);
}

absl::Status Connection::Tell(const grpc::ClientContext& context, bool only) {
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

}  // namespace ablate::client
