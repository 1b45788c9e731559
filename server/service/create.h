// CreateExperiment: from a request to queued runs, or to everything that is wrong with it.
#ifndef ABLATE_SERVER_SERVICE_CREATE_H_
#define ABLATE_SERVER_SERVICE_CREATE_H_

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "server/service/backend.h"

namespace ablate::service {

// Blocks on the store and the scheduler. INVALID_ARGUMENT lists every problem; with validate_only
// they are in the response and nothing is changed. ALREADY_EXISTS if request_id was used for
// another request.
absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    const Backend& backend, const v1::CreateExperimentRequest& request);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CREATE_H_
