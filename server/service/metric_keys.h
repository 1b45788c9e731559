// The metrics that a request names.
#ifndef ABLATE_SERVER_SERVICE_METRIC_KEYS_H_
#define ABLATE_SERVER_SERVICE_METRIC_KEYS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "storage/store.h"

namespace ablate::service {

using WantedKeys = google::protobuf::RepeatedPtrField<std::string>;

// INVALID_ARGUMENT in field `keys`, unless each can be a metric's and there are not too many.
absl::Status CheckKeys(const WantedKeys& wanted);

// Those of `wanted` that the run has, in that order and each once; all of the run's in ascending
// order if none is wanted.
absl::StatusOr<std::vector<std::string>> KeysToRead(storage::Store* store, const std::string& run,
                                                    const WantedKeys& wanted);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_METRIC_KEYS_H_
