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
                                                const storage::RunSummaries& summaries);

// The metric keys of an experiment's runs, sorted.
absl::StatusOr<std::vector<std::string>> KeysOf(storage::Store* store,
                                                const std::string& experiment);

// INVALID_ARGUMENT about what no run of `experiment` has: the key that `field` names, with those
// that there are, or the step, with the nearest ones of `run`.
absl::Status NoSuchKey(absl::string_view field, const std::string& key,
                       const std::string& experiment, const std::vector<std::string>& keys);
absl::Status NoSuchValue(storage::Store* store, const std::string& experiment,
                         const ValueQuery& query, const std::string& run);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_GRID_VALUES_H_
