// The axes of an experiment as lists of points, each a label and what it writes; names and the
// labels of values.
#ifndef ABLATE_SERVER_SPEC_AXES_H_
#define ABLATE_SERVER_SPEC_AXES_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "server/spec/bad_paths.h"
#include "server/spec/problems.h"
#include "server/spec/writes.h"

namespace ablate::spec {

// A problem at `field` unless `text` is a name.
void CheckName(const std::string& field, absl::string_view text, Problems* problems);

// Whether a value has a label: numbers, text and booleans do.
bool HasLabel(const google::protobuf::Value& value);

// Numbers as their shortest decimal (text::ShortestDecimal: 0.01, 5e-05, 16), true and false,
// text as it is.
std::string ValueLabel(const google::protobuf::Value& value);

// One setting of an axis.
struct Point {
  std::string label;
  std::string part;  // of a cell's name: the label, after the axis's name for a field axis
  std::vector<Write> writes;
  BadPaths bad;         // that it writes, and whose values have problems
  bool broken = false;  // it's not known what it writes: cells with it are not worth checking
};

struct AxisPlan {
  std::string name;
  std::string source;  // axes[0]
  bool is_field = false;
  bool tuned = false;
  std::vector<Point> points;  // at least one
};

// One plan an axis, complete if there is no problem.
std::vector<AxisPlan> ReadAxes(const v1::ExperimentSpec& spec, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_AXES_H_
