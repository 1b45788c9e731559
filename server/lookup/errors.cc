#include "server/lookup/errors.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/reflect/text.h"
#include "server/lookup/limits.h"

namespace ablate::lookup {
namespace {

constexpr absl::string_view kBadRequest = "type.googleapis.com/google.rpc.BadRequest";
constexpr absl::string_view kErrorInfo = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kRetryInfo = "type.googleapis.com/google.rpc.RetryInfo";
constexpr absl::Duration kTryAgainAfter = absl::Seconds(1);
// Room in the details for the note about violations that were left out.
constexpr size_t kNoteBytes = 120;

// Returns the number of bytes that gRPC makes of a byte of the message in the trailer: itself, or
// %XX.
size_t EncodedBytes(absl::string_view character) {
  const char c = character[0];
  return character.size() == 1 && c >= ' ' && c <= '~' && c != '%' ? 1 : 3 * character.size();
}

// Returns valid UTF-8 that fits into the trailer.
std::string ShortMessage(absl::string_view message) {
  std::string text;
  size_t encoded = 0;
  while (!message.empty()) {
    const size_t bytes = text::CharacterLength(message);
    const absl::string_view character = bytes == 0 ? "?" : message.substr(0, bytes);
    encoded += EncodedBytes(character);
    if (encoded > kErrorMessageBytes) return absl::StrCat(text, "…");
    absl::StrAppend(&text, character);
    message.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return text;
}

void AddDetail(absl::string_view url, const std::string& value, google::rpc::Status* status) {
  google::protobuf::Any* detail = status->add_details();
  detail->set_type_url(std::string(url));
  detail->set_value(value);
}

// Returns the first violations that fit into `room` bytes, and the number of the others.
google::rpc::BadRequest Trimmed(const google::rpc::BadRequest& all, size_t room) {
  google::rpc::BadRequest kept;
  size_t bytes = 0;
  for (const auto& violation : all.field_violations()) {
    bytes += violation.ByteSizeLong() + 4;  // tag and length
    if (bytes + kNoteBytes > room) break;
    *kept.add_field_violations() = violation;
  }
  const int dropped = all.field_violations_size() - kept.field_violations_size();
  if (dropped > 0) {
    kept.add_field_violations()->set_description(
        absl::StrCat("and ", dropped, " more; a dry run (validate_only) lists all of them"));
  }
  return kept;
}

}  // namespace

absl::Status InvalidField(absl::string_view field, absl::string_view complaint,
                          absl::string_view allowed) {
  return InvalidFields({reflect::MakeProblem(std::string(field), "", complaint, allowed)});
}

absl::Status TooMany(absl::string_view field, int entries, int max) {
  return InvalidField(field, absl::StrCat(entries, " entries"), absl::StrCat("at most ", max));
}

absl::Status UnknownFormat(int format, absl::string_view allowed) {
  return InvalidField("format", format == 0 ? "missing" : absl::StrCat(format, " isn't a format"),
                      allowed);
}

absl::Status MalformedRequest() {
  return WithReason(
      absl::InvalidArgumentError("the request is malformed: it doesn't parse as this method's "
                                 "message, or a text in it isn't UTF-8. Check that client and "
                                 "server have the same version"),
      "MALFORMED_REQUEST");
}

absl::Status CallCancelled() { return absl::CancelledError("the call was cancelled"); }

absl::Status CheckSha256(absl::string_view value) {
  if (IsSha256(value)) return absl::OkStatus();
  return InvalidField(
      "sha256",
      value.empty() ? "missing" : absl::StrCat(reflect::Quoted(value), " isn't a SHA-256"),
      "64 lower-case hex digits");
}

absl::Status InvalidFields(const std::vector<spec::Problem>& problems) {
  google::rpc::BadRequest details;
  std::string message;
  if (problems.size() > 1) message = absl::StrCat(problems.size(), " problems: ");
  for (size_t i = 0; i < problems.size(); ++i) {
    auto* violation = details.add_field_violations();
    violation->set_field(problems[i].field);
    violation->set_description(problems[i].message);
    if (message.size() < kErrorMessageBytes) {
      absl::StrAppend(&message, i == 0 ? "" : "; ", problems[i].message);
    }
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kBadRequest, absl::Cord(details.SerializeAsString()));
  return status;
}

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (status.ok()) return status;
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("ablate");
  status.SetPayload(kErrorInfo, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status TooManyAtOnce(absl::string_view what, const Limit& limit) {
  return WithRetry(
      absl::ResourceExhaustedError(absl::StrCat("too many ", what, " at once; expected at most ",
                                                text::Grouped(limit.total), ". Retry later")),
      kTryAgainAfter);
}

absl::Status TooManyOfUser(absl::string_view what, absl::string_view user, size_t has,
                           const Limit& limit) {
  const absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("too many ", what, " at once: ", user, " has ", text::Grouped(has),
                   "; expected at most ", text::Grouped(limit.per_user), " per user and ",
                   text::Grouped(limit.total), " in all. Retry later"));
  return WithRetry(WithReason(status, "USER_LIMIT"), kTryAgainAfter);
}

absl::Status WithRetry(absl::Status status, absl::Duration delay) {
  if (status.ok()) return status;
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(absl::IDivDuration(delay, absl::Seconds(1), &delay));
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  status.SetPayload(kRetryInfo, absl::Cord(info.SerializeAsString()));
  return status;
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(ShortMessage(status.message()));
  if (const auto retry = status.GetPayload(kRetryInfo)) {
    AddDetail(kRetryInfo, std::string(*retry), &details);
  }
  if (const auto payload = status.GetPayload(kBadRequest)) {
    google::rpc::BadRequest all;
    all.ParseFromString(std::string(*payload));
    const size_t used = details.ByteSizeLong() + 2 * kBadRequest.size();
    AddDetail(kBadRequest, Trimmed(all, kErrorDetailBytes - used).SerializeAsString(), &details);
  } else if (const auto info = status.GetPayload(kErrorInfo)) {
    AddDetail(kErrorInfo, std::string(*info), &details);
  } else {
    const absl::Status named = WithReason(status, absl::StatusCodeToString(status.code()));
    AddDetail(kErrorInfo, std::string(*named.GetPayload(kErrorInfo)), &details);
  }
  return {static_cast<grpc::StatusCode>(status.code()), details.message(),
          details.SerializeAsString()};
}

}  // namespace ablate::lookup
