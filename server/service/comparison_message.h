// Converts a comparison to the API's message.
#ifndef ABLATE_SERVER_SERVICE_COMPARISON_MESSAGE_H_
#define ABLATE_SERVER_SERVICE_COMPARISON_MESSAGE_H_

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "server/results/compare.h"

namespace ablate::service {

// Leaves out the matched blocks except the reference if the message would exceed kPageBytes;
// RESOURCE_EXHAUSTED if it still does.
absl::StatusOr<v1::Comparison> ToMessage(const results::ComparedGrid& compared);

// The same with the gate's decision. INVALID_ARGUMENT at `gate.level` and `gate.changes`.
absl::StatusOr<v1::Comparison> ToMessage(const results::ComparedGrid& compared,
                                         const v1::GateRequest& gate);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_COMPARISON_MESSAGE_H_
