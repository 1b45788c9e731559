// Reads the details that the server gives with an error.
#include "client/call_status.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace ablate::client {
namespace {

// The server's message and, if they say more, the descriptions of its field violations.
std::string Message(const grpc::Status& status) {
  std::string message = status.error_message();
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return message;
  for (const google::protobuf::Any& any : details.details()) {
    google::rpc::BadRequest bad;
    if (!any.UnpackTo(&bad)) continue;
    for (const auto& violation : bad.field_violations()) {
      if (absl::StrContains(message, violation.description())) continue;
      absl::StrAppend(&message, message.empty() ? "" : "; ", violation.description());
    }
  }
  return message;
}

}  // namespace

absl::Status StatusOf(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  // Our server gives details with every error, the transport none.
  const bool answered = !status.error_details().empty();
  // The transport cancels what reaches a server that shuts down; nothing of ours cancels and asks.
  const bool cut_off = status.error_code() == grpc::StatusCode::CANCELLED && !answered;
  if (cut_off) {
    return absl::UnavailableError(absl::StrCat("the server at ", address, " is shutting down"));
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !answered) {
    return absl::UnavailableError(absl::StrCat("no server answers at ", address,
                                               ": run `ablate up` (", Message(status), ")"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(
        absl::StrCat("the server at ", address, " did not answer in time"));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), Message(status));
}

}  // namespace ablate::client
