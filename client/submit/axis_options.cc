#include "client/submit/axis_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "client/output/experiment_text.h"
#include "proto/reflect/field_hints.h"
#include "proto/reflect/from_value.h"
#include "proto/reflect/text.h"
#include "proto/yaml/document.h"
#include "proto/yaml/shorthands.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

absl::StatusOr<AxisOption> ParseAxis(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return absl::InvalidArgumentError("write NAME=VALUES, such as lr=1e-3,3e-3");
  }
  const std::string text = argument.substr(equals + 1);
  if (text.find_first_not_of(' ') == std::string::npos) {
    return absl::InvalidArgumentError("no values after the '='; expected some, such as 1e-3,3e-3");
  }
  const bool whole = absl::StartsWith(text, "[") || absl::StartsWith(text, "{");
  ASSIGN_OR_RETURN(Value values, yaml::ParseValue(whole ? text : absl::StrCat("[", text, "]")));
  return AxisOption{argument.substr(0, equals), std::move(values)};
}

// Adds the paths of settings that are `name` or end in it.
void AddSettings(const google::protobuf::Struct& settings, const std::string& path,
                 const std::string& name, std::vector<std::string>* paths) {
  for (const auto& [member, value] : settings.fields()) {
    const std::string below = absl::StrCat(path, ".", member);
    if (value.has_struct_value()) {
      AddSettings(value.struct_value(), below, name, paths);
    } else if (absl::EndsWith(below, absl::StrCat(".", name))) {
      paths->push_back(below);
    }
  }
}

// Returns the path below base that `name` means; with a program, first one of its settings.
// INVALID_ARGUMENT.
absl::StatusOr<std::string> PathOf(const std::string& name, const v1::BaseSpec& base) {
  std::vector<std::string> settings;
  if (base.has_program()) AddSettings(base.settings(), "settings", name, &settings);
  if (settings.size() == 1) return settings[0];
  Value clear;
  clear.set_null_value(google::protobuf::NULL_VALUE);
  v1::BaseSpec scratch;
  std::vector<reflect::FieldProblem> problems;
  reflect::SetPath(name, clear, name, &scratch, &problems);
  if (problems.empty()) return name;
  const std::vector<std::string> paths = reflect::PathsEnding(v1::BaseSpec::descriptor(), name);
  if (paths.size() == 1) return paths[0];
  if (paths.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("several fields have this name; expected ", reflect::AnyOf(paths)));
  }
  return absl::InvalidArgumentError(yaml::WithoutField(problems[0].message, name));
}

// Returns the index of the axis that `name` means, which may be a new one. INVALID_ARGUMENT.
absl::StatusOr<int> FindAxis(const std::string& name, v1::ExperimentSpec* spec) {
  for (int i = 0; i < spec->axes_size(); ++i) {
    if (AxisName(spec->axes(i)) != name) continue;
    const bool has_settings = !spec->axes(i).settings().empty();
    if (!has_settings && spec->axes(i).switches().empty()) return i;
    return absl::InvalidArgumentError(absl::StrCat("the file's axis of this name has ",
                                                   has_settings ? "settings" : "switches",
                                                   "; expected an axis with field and values"));
  }
  ASSIGN_OR_RETURN(const std::string path, PathOf(name, spec->base()));
  for (int i = 0; i < spec->axes_size(); ++i) {
    if (spec->axes(i).field() == path) return i;
  }
  v1::Axis* axis = spec->add_axes();
  axis->set_field(path);
  if (!absl::StrContains(name, '.') && AxisName(*axis) != name) axis->set_name(name);
  return spec->axes_size() - 1;
}

// Removes the exclusions of values that the axis had before and no longer has.
void RemoveExclusions(const v1::Axis& before, const v1::Axis& axis, v1::ExperimentSpec* spec) {
  std::set<std::string> removed;
  for (const Value& value : before.values()) removed.insert(reflect::ShortText(value));
  for (const Value& value : axis.values()) removed.erase(reflect::ShortText(value));
  auto* exclusions = spec->mutable_exclude();
  const auto names_removed = [&](const v1::Exclusion& exclusion) {
    const auto value = exclusion.where().find(AxisName(axis));
    return value != exclusion.where().end() && removed.count(reflect::ShortText(value->second)) > 0;
  };
  exclusions->erase(std::remove_if(exclusions->begin(), exclusions->end(), names_removed),
                    exclusions->end());
}

// Replaces the values of an axis; appends the problems with them.
void SetValues(const AxisOption& option, v1::Axis* axis, std::vector<std::string>* problems) {
  absl::StatusOr<Value> values = option.values;
  if (option.values.has_struct_value()) values = yaml::ExpandRange(option.values, axis->field());
  if (!values.ok()) {
    problems->emplace_back(values.status().message());
    return;
  }
  axis->clear_values();
  for (Value& value : *values->mutable_list_value()->mutable_values()) {
    const std::string field = absl::StrCat("values[", axis->values_size(), "]");
    yaml::ExpandProgramValue(axis->field(), &value);
    *axis->add_values() = value;
    v1::BaseSpec scratch;
    std::vector<reflect::FieldProblem> found;
    reflect::SetPath(axis->field(), value, field, &scratch, &found);
    for (reflect::FieldProblem& problem : found) problems->push_back(std::move(problem.message));
  }
}

}  // namespace

absl::StatusOr<std::vector<AxisOption>> ParseAxes(const std::vector<std::string>& arguments) {
  std::vector<AxisOption> options;
  std::vector<std::string> wrong;
  for (const std::string& argument : arguments) {
    absl::StatusOr<AxisOption> option = ParseAxis(argument);
    if (option.ok()) {
      options.push_back(*std::move(option));
    } else {
      wrong.push_back(absl::StrCat("--axis ", argument.substr(0, argument.find('=')), ": ",
                                   option.status().message()));
    }
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "; "));
  return options;
}

std::map<int, std::string> ApplyAxes(const std::vector<AxisOption>& options, ExperimentFile* file) {
  std::map<int, std::string> applied;
  for (const AxisOption& option : options) {
    const std::string where = absl::StrCat("--axis ", option.name);
    std::vector<std::string> problems;
    const absl::StatusOr<int> index = FindAxis(option.name, &file->spec);
    if (!index.ok()) {
      problems.emplace_back(index.status().message());
    } else if (const auto [other, is_new] = applied.emplace(*index, where); !is_new) {
      problems.push_back(absl::StrCat(other->second, " gives values to the same axis already"));
    } else {
      const v1::Axis before = file->spec.axes(*index);
      SetValues(option, file->spec.mutable_axes(*index), &problems);
      RemoveExclusions(before, file->spec.axes(*index), &file->spec);
    }
    for (std::string& problem : problems) {
      file->problems.push_back({{}, std::move(problem), where});
    }
  }
  return applied;
}

}  // namespace ablate::client
