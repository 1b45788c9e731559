// Replaces shorthands of experiment files by the fields that they stand for: `seeds: 8`, `seeds:
// 42..53`, ranges as the values of an axis, values of an axis per label of another one, a setting
// as `LABEL: {PATH: VALUE}`, and a program's command as a shell line, its files as a list, and its
// limits with units.
#ifndef ABLATE_PROTO_YAML_SHORTHANDS_H_
#define ABLATE_PROTO_YAML_SHORTHANDS_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/from_value.h"

namespace ablate::yaml {

// Largest number of values of an axis, as in spec.proto.
inline constexpr uint32_t kMaxAxisValues = 1'000;

// Replaces the shorthands in the tree of an experiment. A shorthand with a problem is removed, and
// the problem appended.
void ExpandShorthands(google::protobuf::Value* root, std::vector<reflect::FieldProblem>* problems);

// Replaces the shorthands of a program in the value at `path` below base: a command as a shell
// line, files as a list, limits with units. Other values stay.
void ExpandProgramValue(const std::string& path, google::protobuf::Value* value);

// Returns `count` values from `first` to `last`, which are exact, in equal steps or, for `log`, in
// equal ratios. Values between have the fewest digits that keep them within a hundredth of a step,
// at least three; they are whole numbers if `whole`. Needs two or more values and, for `log`,
// positive ends.
std::vector<double> RangeValues(double first, double last, uint32_t count, bool log, bool whole);

// Returns the list that `range`, such as {log: [1e-4, 1e-2], count: 5}, stands for. `field` is the
// axis's, below base: fields of whole numbers get whole numbers. INVALID_ARGUMENT: "COMPLAINT;
// expected ALLOWED".
absl::StatusOr<google::protobuf::Value> ExpandRange(const google::protobuf::Value& range,
                                                    absl::string_view field);

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_SHORTHANDS_H_
