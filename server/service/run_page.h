// Encodes the place in a filtered or sorted list of runs where its next page begins.
#ifndef ABLATE_SERVER_SERVICE_RUN_PAGE_H_
#define ABLATE_SERVER_SERVICE_RUN_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/run_query.h"

namespace ablate::service {

// The next page begins after a row, by the value that it had; so a row that changes meanwhile may
// be missed or repeated, but no other. Times such as -2d count from the first page.
struct RunPagePosition {
  absl::Time now;
  storage::RunPosition after;
};

std::string EncodePosition(const RunPagePosition& position);
// Returns false if `text` isn't a position.
[[nodiscard]] bool DecodePosition(absl::string_view text, RunPagePosition* position);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_RUN_PAGE_H_
