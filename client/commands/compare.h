// Options of `ablate compare` and of other commands that compare settings.
#ifndef ABLATE_CLIENT_COMMANDS_COMPARE_H_
#define ABLATE_CLIENT_COMMANDS_COMPARE_H_

#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "client/command_line.h"

namespace ablate::client {

struct ComparisonOptions {
  std::string experiment;
  std::vector<std::string> others;  // experiments, or parts of them, that it is compared with
  std::string key;
  std::string by;
  std::string at;
  std::vector<std::string> baseline;
};

inline constexpr char kCompareKeyHelp[] = "Compare this metric [report.primary]";

// Adds --key, --by, --baseline and --at.
void AddComparisonChoices(Command* command, ComparisonOptions* options,
                          const char* key_help = kCompareKeyHelp);
// Adds EXP, the same, and --with.
void AddComparisonOptions(Command* command, ComparisonOptions* options,
                          const char* key_help = kCompareKeyHelp);

// Returns the request for a comparison. INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<v1::CompareRequest> MakeCompareRequest(const ComparisonOptions& options);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMMANDS_COMPARE_H_
