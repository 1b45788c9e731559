// Reads the seeds of a text such as 42..53, of an option or in an experiment file.
#ifndef ABLATE_PROTO_YAML_SEEDS_H_
#define ABLATE_PROTO_YAML_SEEDS_H_

#include <cstdint>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::yaml {

// Largest number of seeds, as in spec.proto.
inline constexpr uint32_t kMaxSeeds = 10'000;

// Returns the seeds of `8` (eight, from 0), `0..9` (both included), `1,2,5` or a mix such as
// `0..3,9`: all distinct. INVALID_ARGUMENT: "COMPLAINT; expected ALLOWED".
absl::StatusOr<v1::Seeds> ParseSeeds(absl::string_view text);

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_SEEDS_H_
