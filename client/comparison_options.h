// What commands that compare settings have in common on the command line.
#ifndef ABLATE_CLIENT_COMPARISON_OPTIONS_H_
#define ABLATE_CLIENT_COMPARISON_OPTIONS_H_

#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "client/command.h"

namespace ablate::client {

struct ComparisonOptions {
  std::string experiment;
  std::string key;
  std::string by;
  std::string at;
  std::vector<std::string> baseline;
};

// --key, --by, --baseline and --at of `command`; with AddComparisonOptions EXP before them.
void AddComparisonChoices(Command* command, ComparisonOptions* options);
void AddComparisonOptions(Command* command, ComparisonOptions* options);

// INVALID_ARGUMENT names the option that makes no sense.
absl::StatusOr<v1::CompareRequest> ToRequest(const ComparisonOptions& options);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMPARISON_OPTIONS_H_
