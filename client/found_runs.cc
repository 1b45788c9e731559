#include "client/found_runs.h"

#include <utility>

#include "absl/status/status.h"

namespace ablate::client {

absl::StatusOr<v1::ListRunsResponse> ListFoundRuns(Connection* connection,
                                                   v1::ListRunsRequest request, uint32_t limit) {
  const bool asks =
      !request.filter().empty() || !request.order_by().empty() || !request.columns().empty();
  auto runs = ListFirst(connection, kListRuns, &v1::ListRunsResponse::mutable_rows,
                        std::move(request), limit);
  // Servers with filters name the experiment of each row.
  if (asks && runs.ok() && !runs->rows().empty() && runs->rows(0).experiment().empty()) {
    return absl::FailedPreconditionError(
        "the server is older than this ablate and has no filters. Run ablate down, then ablate up");
  }
  return runs;
}

std::string SortedKey(const std::string& order) {
  std::string key = order.substr(0, order.find(' '));
  return key.rfind('-', 0) == 0 ? key.substr(1) : key;
}

}  // namespace ablate::client
