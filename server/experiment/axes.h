// Reads the axes of an experiment as lists of points, each a label and its writes; checks names and
// makes the labels of values.
#ifndef ABLATE_SERVER_EXPERIMENT_AXES_H_
#define ABLATE_SERVER_EXPERIMENT_AXES_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "server/config/bad_paths.h"
#include "server/config/problems.h"
#include "server/experiment/writes.h"

namespace ablate::spec {

// Adds a problem at `field` unless `text` is a valid name.
void CheckName(const std::string& field, absl::string_view text, Problems* problems);

// Adds a problem at `field` unless `text` has the form of a label; `what` is its word, such as tag.
void CheckLabel(const std::string& field, absl::string_view text, absl::string_view what,
                Problems* problems);

// Returns true for a value with a label: numbers, text and booleans.
bool HasLabel(const google::protobuf::Value& value);

// Returns the label: the shortest decimal of a number (text::ShortestDecimal: 0.01, 5e-05, 16),
// true or false, or the text as it is.
std::string ValueLabel(const google::protobuf::Value& value);

// One setting of an axis. Switches become settings, too.
struct Point {
  std::string label;
  std::string part;  // part of a cell's name: the label, for a field axis after the axis's name
  std::vector<Write> writes;
  BadPaths bad;         // paths that it writes and whose values have problems
  bool broken = false;  // its writes are unknown: don't check cells with it
};

struct AxisPlan {
  std::string name;
  std::string source;  // axes[0]
  bool is_field = false;
  bool has_switches = false;  // which the points are made of
  bool tuned = false;
  std::vector<Point> points;  // at least one

  // Returns true if comparisons select a value. A tuned axis of one value, such as one that --axis
  // left, is fixed.
  bool selects() const { return tuned && points.size() > 1; }
};

// Replaces the switches of axes by the settings that `plans`, the result of ReadAxes without
// problems, has for them.
void ReplaceSwitches(const std::vector<AxisPlan>& plans, v1::ExperimentSpec* spec);

// Reads the axes, one plan each, complete unless it adds a problem. The base declares the settings
// of a program that they may vary.
std::vector<AxisPlan> ReadAxes(const v1::ExperimentSpec& spec, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_AXES_H_
