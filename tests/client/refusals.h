// What a server refuses a call with, and how a command must end then.
#ifndef ABLATE_TESTS_CLIENT_REFUSALS_H_
#define ABLATE_TESTS_CLIENT_REFUSALS_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "client/context.h"
#include "google/rpc/status.pb.h"
#include "tests/client/fake_server.h"

namespace ablate::client {

struct Refusal {
  absl::StatusCode code;
  int exit_code;
};

inline constexpr Refusal kRefusals[] = {{absl::StatusCode::kPermissionDenied, kFailure},
                                        {absl::StatusCode::kUnauthenticated, kFailure},
                                        {absl::StatusCode::kNotFound, kFailure},
                                        {absl::StatusCode::kResourceExhausted, kFailure},
                                        {absl::StatusCode::kUnavailable, kNoServer}};

// As our server answers: with details, which a transport that fails by itself has not.
inline absl::Status Refused(const Refusal& refusal) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(refusal.code));
  absl::Status status(refusal.code, "not \"now\": ask box's admin");
  status.SetPayload(kDetails, absl::Cord(details.SerializeAsString()));
  return status;
}

inline constexpr char kRefusedText[] = "error: not \"now\": ask box's admin\n";

}  // namespace ablate::client

#endif  // ABLATE_TESTS_CLIENT_REFUSALS_H_
