// Errors as clients see them: absl::Status inside, grpc::Status with google.rpc.Status details
// outside.
#ifndef ABLATE_SERVER_RPC_ERRORS_H_
#define ABLATE_SERVER_RPC_ERRORS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "server/rpc/limits.h"
#include "server/spec/resolve.h"

namespace ablate::rpc {

// INVALID_ARGUMENT about one field of the request, in reflect::MakeProblem's form: the complaint
// says the value.
absl::Status InvalidField(absl::string_view field, absl::string_view complaint,
                          absl::string_view allowed);
// That a list has more than `max` entries.
absl::Status TooMany(absl::string_view field, int entries, int max);
// That `format`, an enum's value, is missing or none of the `allowed` ones.
absl::Status UnknownFormat(int format, absl::string_view allowed);

// That `value` in field sha256 is no hash, if it is none.
absl::Status CheckSha256(absl::string_view value);

// INVALID_ARGUMENT that lists problems of a spec; at least one.
absl::Status InvalidFields(const std::vector<spec::Problem>& problems);

// Of a request whose bytes are no message of its method.
absl::Status MalformedRequest();
// Of a call that its client has cancelled.
absl::Status CallCancelled();

// `status` with an ErrorInfo: a reason in UPPER_SNAKE_CASE for programs. OK stays OK.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// RESOURCE_EXHAUSTED because the server has `most.all` of `what` ("watches") already, or `user` has
// `has` of the `most.of_user` that one may have; the latter with the reason USER_LIMIT. Both say to
// try again in a second.
absl::Status TooManyAtOnce(absl::string_view what, const Most& most);
absl::Status TooManyOfUser(absl::string_view what, absl::string_view user, size_t has,
                           const Most& most);

// `status` with a RetryInfo: that the same call may succeed after `delay`. OK stays OK.
absl::Status WithRetry(absl::Status status, absl::Duration delay);

// The message is made valid UTF-8 and shortened; details are what InvalidField, InvalidFields,
// WithReason and WithRetry attached (else an ErrorInfo with the code's name) within
// kErrorDetailBytes: of surplus field violations the last one says how many were left out.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_ERRORS_H_
