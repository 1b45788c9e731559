// Data sets that an experiment names by a path.
#include "client/dataset_paths.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/names.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

// The last part of a dotted path.
absl::string_view LastPart(absl::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == absl::string_view::npos ? path : path.substr(dot + 1);
}

// Adds the paths in `value`, which is written to `path` below base. `place` says where it stands.
void Look(absl::string_view path, const DatasetPath& place, Value* value,
          std::vector<DatasetPath>* found) {
  DatasetPath here = place;
  if (value->kind_case() == Value::kStructValue) {
    for (auto& [name, member] : *value->mutable_struct_value()->mutable_fields()) {
      here.field = absl::StrCat(place.field, ".", name);
      Look(name, here, &member, found);
    }
  } else if (value->kind_case() == Value::kStringValue && LastPart(path) == "dataset") {
    here.name = value->mutable_string_value();
    if (IsPath(*here.name)) found->push_back(here);
  }
}

DatasetPath InFile(std::string field) { return {std::move(field), nullptr, false, false}; }
DatasetPath AsLabel(std::string field) { return {std::move(field), nullptr, false, true}; }
DatasetPath OfOption(std::string field) { return {std::move(field), nullptr, true, false}; }

// Axes that vary a data set, by name.
std::set<std::string> LookInAxes(v1::ExperimentSpec* spec, std::vector<DatasetPath>* found) {
  std::set<std::string> dataset_axes;
  for (int i = 0; i < spec->axes_size(); ++i) {
    v1::Axis& axis = *spec->mutable_axes(i);
    const std::string last(LastPart(axis.field()));
    if (last == "dataset") dataset_axes.insert(axis.has_name() ? axis.name() : last);
    for (int j = 0; j < axis.values_size(); ++j) {
      Look(axis.field(), AsLabel(absl::StrCat("axes[", i, "].values[", j, "]")),
           axis.mutable_values(j), found);
    }
    for (int j = 0; j < axis.settings_size(); ++j) {
      for (auto& [path, value] : *axis.mutable_settings(j)->mutable_set()) {
        Look(path,
             InFile(absl::StrCat("axes[", i, "].settings[", j, "].set", reflect::Subscript(path))),
             &value, found);
      }
    }
  }
  return dataset_axes;
}

std::string Resolve(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

// Whether the command line replaces what base says of the data set, or the task that has one.
bool IsOverridden(const Overrides& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const auto& override) {
    const auto& [path, value] = override;
    const bool replaced =
        path == "task" || path == "task.documents" || path == "task.documents.dataset";
    const bool other_task =
        path == "task.legacy_recall" || absl::StartsWith(path, "task.legacy_recall.");
    return replaced || (other_task && !value.has_null_value());
  });
}

// Errors that are about the file and not about the connection.
bool IsAboutFile(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status) || absl::IsDataLoss(status);
}

}  // namespace

bool IsPath(const std::string& dataset) {
  return !absl::StartsWith(dataset, "datasets/") &&
         dataset.find_first_of("/.") != std::string::npos;
}

std::vector<DatasetPath> FindDatasetPaths(v1::ExperimentSpec* spec, Overrides* overrides) {
  std::vector<DatasetPath> found;
  if (spec->base().task().documents().has_dataset() && !IsOverridden(*overrides)) {
    DatasetPath base = InFile("base.task.documents.dataset");
    base.name = spec->mutable_base()->mutable_task()->mutable_documents()->mutable_dataset();
    if (IsPath(*base.name)) found.push_back(base);
  }
  const std::set<std::string> dataset_axes = LookInAxes(spec, &found);
  for (int i = 0; i < spec->exclude_size(); ++i) {
    for (auto& [axis, value] : *spec->mutable_exclude(i)->mutable_where()) {
      if (dataset_axes.count(axis) == 0) continue;
      const std::string field = absl::StrCat("exclude[", i, "].where", reflect::Subscript(axis));
      Look("dataset", AsLabel(field), &value, &found);
    }
  }
  for (auto& [path, value] : *overrides) Look(path, OfOption(path), &value, &found);
  return found;
}

absl::Status ReplaceDatasetPaths(
    ExperimentFile* file, Overrides* overrides,
    const std::function<absl::StatusOr<std::string>(const std::string& path)>& upload) {
  std::map<std::string, absl::StatusOr<std::string>> uploads;
  for (const DatasetPath& place : FindDatasetPaths(&file->spec, overrides)) {
    const std::string path = Resolve(file->folder, *place.name);
    auto done = uploads.find(path);
    if (done == uploads.end()) done = uploads.emplace(path, upload(path)).first;
    const absl::StatusOr<std::string>& name = done->second;
    if (name.ok()) {
      *place.name = place.is_label ? Id(*name) : *name;
      continue;
    }
    if (!IsAboutFile(name.status())) return name.status();
    const std::string message(name.status().message());
    if (place.from_command_line) {
      file->problems.push_back({{}, message, absl::StrCat("--set ", place.field)});
    } else {
      file->problems.push_back(
          {file->positions.Find(place.field), absl::StrCat(place.field, ": ", message), ""});
    }
  }
  SortByPosition(&file->problems);
  return absl::OkStatus();
}

}  // namespace ablate::client
