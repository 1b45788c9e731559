// The value of a metric that each run of a grid is judged by.
#ifndef ABLATE_SERVER_SERVICE_GRID_VALUES_H_
#define ABLATE_SERVER_SERVICE_GRID_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/store.h"

namespace ablate::service {

// Of one key, at a step or, without one, at each run's last point.
struct ValueQuery {
  std::string key;
  std::optional<uint32_t> at;
};

// Nothing if the run has no such point. `summaries` are the run's; at the end they suffice, unless
// some point is not finite. Blocks on the store.
absl::StatusOr<std::optional<double>> ReadValue(storage::Store* store, const ValueQuery& query,
                                                const std::string& run,
                                                const std::vector<storage::Summary>& summaries);

// INVALID_ARGUMENT about what no run of `experiment` has: the key, with those that there are, or
// the step, with the nearest ones of `run`.
absl::Status NoSuchKey(storage::Store* store, const std::string& experiment,
                       const std::string& key);
absl::Status NoSuchValue(storage::Store* store, const std::string& experiment,
                         const ValueQuery& query, const std::string& run);

// Whether some run of `experiment` has points of `key`.
absl::StatusOr<bool> HasKey(storage::Store* store, const std::string& experiment,
                            const std::string& key);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_GRID_VALUES_H_
