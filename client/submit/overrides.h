// --set path=value and --seeds 0..9: what the command line changes about an experiment.
#ifndef ABLATE_CLIENT_SUBMIT_OVERRIDES_H_
#define ABLATE_CLIENT_SUBMIT_OVERRIDES_H_

#include <map>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/submit/source_text.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {

using Overrides = std::map<std::string, google::protobuf::Value>;

// The overrides of `arguments`, each `path=value` with a value as in a YAML file (null clears), no
// path twice. INVALID_ARGUMENT says which argument is none and why.
absl::StatusOr<Overrides> ParseOverrides(const std::vector<std::string>& arguments);

// Appends every problem with paths, which lie below base, and with values of the wrong kind.
void CheckOverrides(const Overrides& overrides, std::vector<Diagnostic>* problems);

// `7`, `0..9` (both included), `1,2,5` or a mix such as `0..3,9`. INVALID_ARGUMENT says what is
// wrong; at most 10,000 seeds, all distinct.
absl::StatusOr<v1::Seeds> ParseSeeds(absl::string_view text);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_OVERRIDES_H_
