// The axes of a stored experiment, and checks of what a request says about them.
#include "server/service/grid_axes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"
#include "server/spec/axes.h"
#include "server/spec/field_values.h"
#include "server/spec/fields.h"
#include "server/spec/writes.h"

namespace ablate::service {
namespace {

using google::protobuf::Value;

spec::FieldValues Filled(v1::BaseSpec base, bool cuda) {
  spec::FillDefaults(cuda, &base);
  return spec::ValuesOf(base);
}

// The label whose writes leave the base as it is.
std::optional<std::string> BaseLabel(const spec::AxisPlan& axis, const v1::BaseSpec& base,
                                     const spec::FieldValues& filled, bool cuda) {
  for (const spec::Point& point : axis.points) {
    v1::BaseSpec written = base;
    std::vector<spec::Problem> problems;
    spec::Apply(point.writes, &written, &problems);
    if (problems.empty() && Filled(std::move(written), cuda) == filled) return point.label;
  }
  return std::nullopt;
}

std::vector<double> NumbersOf(const v1::Axis& axis) {
  std::vector<double> numbers;
  for (const Value& value : axis.values()) {
    if (value.kind_case() != Value::kNumberValue) return {};
    numbers.push_back(value.number_value());
  }
  return numbers;
}

absl::Status NotAnAxis(const std::string& field, const std::string& name,
                       const std::vector<std::string>& axes, absl::string_view what) {
  if (axes.empty()) {
    return InvalidField(field, absl::StrCat(reflect::Quoted(name), " is no ", what),
                        absl::StrCat("nothing: the experiment has no ", what));
  }
  const std::string nearest = reflect::Nearest(name, axes);
  return InvalidField(
      field,
      absl::StrCat(reflect::Quoted(name), " is no ", what,
                   nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)")),
      absl::StrJoin(axes, ", "));
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<report::Axis> AxesOf(const v1::ExperimentSpec& spec, bool cuda) {
  spec::Problems problems;
  const std::vector<spec::AxisPlan> plans = spec::ReadAxes(spec, &problems);
  const spec::FieldValues filled = Filled(spec.base(), cuda);
  std::vector<report::Axis> axes;
  for (size_t i = 0; i < plans.size(); ++i) {
    report::Axis axis;
    axis.name = plans[i].name;
    for (const spec::Point& point : plans[i].points) axis.labels.push_back(point.label);
    axis.tuned = spec.axes(static_cast<int>(i)).tune();
    axis.values = NumbersOf(spec.axes(static_cast<int>(i)));
    axis.base = BaseLabel(plans[i], spec.base(), filled, cuda);
    axes.push_back(std::move(axis));
  }
  return axes;
}

absl::Status CheckAgainstAxes(const std::vector<report::Axis>& axes, const std::string& by,
                              const std::map<std::string, std::string>& baseline) {
  std::vector<std::string> names, compared;
  std::map<std::string, const std::vector<std::string>*> labels;
  for (const report::Axis& axis : axes) {
    names.push_back(axis.name);
    labels[axis.name] = &axis.labels;
    if (!axis.tuned || axis.name == by) compared.push_back(axis.name);
  }
  if (!by.empty() && !Contains(names, by)) return NotAnAxis("by", by, names, "axis");
  for (const auto& [name, label] : baseline) {
    if (!Contains(compared, name)) {
      return NotAnAxis("baseline", name, compared, "axis that is compared");
    }
    if (Contains(*labels[name], label)) continue;
    const std::string what = absl::StrCat("label of ", name);
    return NotAnAxis(absl::StrCat("baseline", reflect::Subscript(name)), label, *labels[name],
                     what);
  }
  return absl::OkStatus();
}

}  // namespace ablate::service
