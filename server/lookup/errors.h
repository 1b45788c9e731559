// Converts errors for clients: absl::Status inside, grpc::Status with google.rpc.Status details
// outside.
#ifndef ABLATE_SERVER_LOOKUP_ERRORS_H_
#define ABLATE_SERVER_LOOKUP_ERRORS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "server/config/problems.h"
#include "server/lookup/limits.h"

namespace ablate::lookup {

// Returns INVALID_ARGUMENT about one field of the request, in reflect::MakeProblem's form; the
// complaint includes the value.
absl::Status InvalidField(absl::string_view field, absl::string_view complaint,
                          absl::string_view allowed);
// Returns the error for a list with more than `max` entries.
absl::Status TooMany(absl::string_view field, int entries, int max);
// Returns the error for an enum value `format` that is missing or isn't one of the `allowed` ones.
absl::Status UnknownFormat(int format, absl::string_view allowed);

// Returns an error about field sha256 if `value` isn't a hash.
absl::Status CheckSha256(absl::string_view value);

// Returns INVALID_ARGUMENT that lists problems of a spec; at least one.
absl::Status InvalidFields(const std::vector<spec::Problem>& problems);

// Returns the error for a request whose bytes aren't a message of its method.
absl::Status MalformedRequest();
// Returns the error of a call that its client has cancelled.
absl::Status CallCancelled();

// Attaches an ErrorInfo to `status`: a reason in UPPER_SNAKE_CASE for programs. OK stays OK.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// Returns RESOURCE_EXHAUSTED: the server has its maximum `limit.total` of `what` ("watches"), or
// the user has the maximum `limit.per_user`; the latter with the reason USER_LIMIT. Both messages
// ask to retry in a second.
absl::Status TooManyAtOnce(absl::string_view what, const Limit& limit);
absl::Status TooManyOfUser(absl::string_view what, absl::string_view user, size_t has,
                           const Limit& limit);

// Attaches a RetryInfo to `status`: the same call may succeed after `delay`. OK stays OK.
absl::Status WithRetry(absl::Status status, absl::Duration delay);

// Converts a status for gRPC. Makes the message valid UTF-8 and shortens it. Details are those that
// InvalidField, InvalidFields, WithReason and WithRetry attached (else an ErrorInfo with the code's
// name), within kErrorDetailBytes; the last field violation gives the number of those left out.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace ablate::lookup

#endif  // ABLATE_SERVER_LOOKUP_ERRORS_H_
