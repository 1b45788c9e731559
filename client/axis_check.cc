// What can be wrong with axes before a server sees them.
#include "client/axis_check.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ablate::client {
namespace {

using Problems = std::vector<reflect::FieldProblem>;

void Try(const std::string& path, const google::protobuf::Value& value, const std::string& field,
         Problems* problems) {
  v1::BaseSpec scratch;
  reflect::SetPath(path, value, field, &scratch, problems);
}

void CheckValues(const v1::Axis& axis, const std::string& name, Problems* problems) {
  google::protobuf::Value clear;
  clear.set_null_value(google::protobuf::NULL_VALUE);
  const size_t before = problems->size();
  Try(axis.field(), clear, absl::StrCat(name, ".field"), problems);
  if (problems->size() > before) return;  // the values could only repeat it
  for (int j = 0; j < axis.values_size(); ++j) {
    Try(axis.field(), axis.values(j), absl::StrCat(name, ".values[", j, "]"), problems);
  }
}

}  // namespace

Problems CheckAxes(const v1::ExperimentSpec& spec) {
  Problems problems;
  for (int i = 0; i < spec.axes_size(); ++i) {
    const v1::Axis& axis = spec.axes(i);
    const std::string name = absl::StrCat("axes[", i, "]");
    if (axis.has_field()) CheckValues(axis, name, &problems);
    for (int j = 0; j < axis.settings_size(); ++j) {
      for (const auto& [path, value] : axis.settings(j).set()) {
        Try(path, value, absl::StrCat(name, ".settings[", j, "].set", reflect::Subscript(path)),
            &problems);
      }
    }
  }
  return problems;
}

}  // namespace ablate::client
