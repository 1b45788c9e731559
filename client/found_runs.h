// Lists runs by a condition and in an order.
#ifndef ABLATE_CLIENT_FOUND_RUNS_H_
#define ABLATE_CLIENT_FOUND_RUNS_H_

#include <cstdint>
#include <string>

#include "ablate/v1/run.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"

namespace ablate::client {

// Returns the first `limit` rows, 0 for all. FAILED_PRECONDITION if the server is so old that it
// ignores the request's filter, order or columns.
absl::StatusOr<v1::ListRunsResponse> ListFoundRuns(Connection* connection,
                                                   v1::ListRunsRequest request, uint32_t limit);

// Returns the key of an order: `KEY`, `-KEY` or `KEY desc`.
std::string SortedKey(const std::string& order);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOUND_RUNS_H_
