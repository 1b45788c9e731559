// Data sets that an experiment names by a path.
#include "client/dataset_paths.h"

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

// The last part of a dotted path.
absl::string_view LastPart(absl::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == absl::string_view::npos ? path : path.substr(dot + 1);
}

class Finder {
 public:
  explicit Finder(std::vector<DatasetPath>* found) : found_(*found) {}

  // `value` is written to `path` below base and stands at `field`.
  void Look(absl::string_view path, const std::string& field, bool from_command_line,
            Value* value) {
    if (value->kind_case() == Value::kStructValue) {
      for (auto& [name, member] : *value->mutable_struct_value()->mutable_fields()) {
        Look(name, absl::StrCat(field, ".", name), from_command_line, &member);
      }
    } else if (value->kind_case() == Value::kStringValue && LastPart(path) == "dataset") {
      Take(field, from_command_line, value->mutable_string_value());
    }
  }

  void Take(const std::string& field, bool from_command_line, std::string* name) {
    if (IsPath(*name)) found_.push_back({field, name, from_command_line});
  }

 private:
  std::vector<DatasetPath>& found_;
};

// Axes that vary a data set, by name.
std::set<std::string> LookInAxes(v1::ExperimentSpec* spec, Finder* finder) {
  std::set<std::string> dataset_axes;
  for (int i = 0; i < spec->axes_size(); ++i) {
    v1::Axis& axis = *spec->mutable_axes(i);
    const std::string last(LastPart(axis.field()));
    if (last == "dataset") dataset_axes.insert(axis.has_name() ? axis.name() : last);
    for (int j = 0; j < axis.values_size(); ++j) {
      finder->Look(axis.field(), absl::StrCat("axes[", i, "].values[", j, "]"), false,
                   axis.mutable_values(j));
    }
    for (int j = 0; j < axis.settings_size(); ++j) {
      for (auto& [path, value] : *axis.mutable_settings(j)->mutable_set()) {
        finder->Look(path,
                     absl::StrCat("axes[", i, "].settings[", j, "].set", reflect::Subscript(path)),
                     false, &value);
      }
    }
  }
  return dataset_axes;
}

std::string Resolve(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

// Whether the command line replaces what base says of the data set.
bool IsOverridden(const Overrides& overrides) {
  return overrides.count("task") + overrides.count("task.documents") +
             overrides.count("task.documents.dataset") >
         0;
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
  Finder finder(&found);
  if (spec->base().task().documents().has_dataset() && !IsOverridden(*overrides)) {
    finder.Take("base.task.documents.dataset", false,
                spec->mutable_base()->mutable_task()->mutable_documents()->mutable_dataset());
  }
  const std::set<std::string> dataset_axes = LookInAxes(spec, &finder);
  for (int i = 0; i < spec->exclude_size(); ++i) {
    for (auto& [axis, value] : *spec->mutable_exclude(i)->mutable_where()) {
      if (dataset_axes.count(axis) == 0) continue;
      finder.Look("dataset", absl::StrCat("exclude[", i, "].where", reflect::Subscript(axis)),
                  false, &value);
    }
  }
  for (auto& [path, value] : *overrides) finder.Look(path, path, true, &value);
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
      *place.name = *name;
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
