#include "proto/yaml/dataset_paths.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/reflect/text.h"

namespace ablate::yaml {
namespace {

using google::protobuf::Value;

// The last part of a dotted path.
absl::string_view LastPart(absl::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == absl::string_view::npos ? path : path.substr(dot + 1);
}

// Returns true for the names of fields whose value is a data set.
bool NamesDataset(absl::string_view field) { return field == "dataset" || field == "tokenizer"; }

// Returns true for names that don't mean a data set of the server.
bool NamesFiles(const std::string& files) {
  return !files.empty() && !absl::StartsWith(files, "datasets/");
}

// Adds the paths in `value`, which is set at `path` below base. `place` has its field.
void CollectPaths(absl::string_view path, const DatasetPath& place, Value* value,
                  std::vector<DatasetPath>* found) {
  if (absl::StartsWith(path, "settings.")) return;  // of a program, whose names are its own
  DatasetPath here = place;
  if (IsFilesPath(path) && value->has_string_value()) {
    here.name = value->mutable_string_value();
    here.is_files = true;
    if (NamesFiles(*here.name)) found->push_back(here);
    return;
  }
  if (value->kind_case() == Value::kStructValue) {
    for (auto& [name, member] : *value->mutable_struct_value()->mutable_fields()) {
      here.field = absl::StrCat(place.field, ".", name);
      CollectPaths(name, here, &member, found);
    }
  } else if (value->kind_case() == Value::kStringValue && NamesDataset(LastPart(path))) {
    here.name = value->mutable_string_value();
    if (IsPath(*here.name)) found->push_back(here);
  }
}

DatasetPath InFile(std::string field) { return {.field = std::move(field)}; }
DatasetPath AsLabel(std::string field) { return {.field = std::move(field), .is_label = true}; }
DatasetPath OfOverride(std::string field) {
  return {.field = std::move(field), .is_override = true};
}

// Adds the paths in the settings or switches at `field`.
void CollectPathsOfSettings(const std::string& field,
                            google::protobuf::RepeatedPtrField<v1::Setting>* settings,
                            std::vector<DatasetPath>* found) {
  for (int i = 0; i < settings->size(); ++i) {
    for (auto& [path, value] : *settings->Mutable(i)->mutable_set()) {
      CollectPaths(path, InFile(absl::StrCat(field, "[", i, "].set", reflect::Subscript(path))),
                   &value, found);
    }
  }
}

// Axes that vary a data set, by name.
std::set<std::string> CollectPathsOfAxes(v1::ExperimentSpec* spec,
                                         std::vector<DatasetPath>* found) {
  std::set<std::string> dataset_axes;
  for (int i = 0; i < spec->axes_size(); ++i) {
    v1::Axis& axis = *spec->mutable_axes(i);
    const std::string last(LastPart(axis.field()));
    if (NamesDataset(last)) dataset_axes.insert(axis.has_name() ? axis.name() : last);
    for (int j = 0; j < axis.values_size(); ++j) {
      CollectPaths(axis.field(), AsLabel(absl::StrCat("axes[", i, "].values[", j, "]")),
                   axis.mutable_values(j), found);
    }
    CollectPathsOfSettings(absl::StrCat("axes[", i, "].settings"), axis.mutable_settings(), found);
    CollectPathsOfSettings(absl::StrCat("axes[", i, "].switches"), axis.mutable_switches(), found);
  }
  return dataset_axes;
}

// A data set that base gives its task: in a field of a kind of task.
struct BaseDataset {
  std::string kind;
  std::string field;
  std::string* name = nullptr;
};

std::vector<BaseDataset> FindBaseDatasets(v1::ExperimentSpec* spec) {
  std::vector<BaseDataset> found;
  if (!spec->base().has_task()) return found;
  v1::TaskSpec* task = spec->mutable_base()->mutable_task();
  if (task->documents().has_dataset()) {
    found.push_back({"documents", "dataset", task->mutable_documents()->mutable_dataset()});
  }
  if (task->documents().has_tokenizer()) {
    found.push_back({"documents", "tokenizer", task->mutable_documents()->mutable_tokenizer()});
  }
  if (task->text().has_dataset()) {
    found.push_back({"text", "dataset", task->mutable_text()->mutable_dataset()});
  }
  if (task->text().has_tokenizer()) {
    found.push_back({"text", "tokenizer", task->mutable_text()->mutable_tokenizer()});
  }
  return found;
}

// Returns the fields that name files of the base's program, by path.
std::map<std::string, std::string*> FilesOfBase(v1::ExperimentSpec* spec) {
  std::map<std::string, std::string*> files;
  if (!spec->base().has_program()) return files;
  v1::ProgramSpec* program = spec->mutable_base()->mutable_program();
  if (program->has_files()) files[kFilesPath] = program->mutable_files();
  if (program->has_data()) files[kDataPath] = program->mutable_data();
  return files;
}

// Returns true if the command line replaces the data set of base, or its task.
bool IsOverridden(const Overrides& overrides, const BaseDataset& base) {
  const std::string task = absl::StrCat("task.", base.kind);
  return std::any_of(overrides.begin(), overrides.end(), [&](const auto& override) {
    const auto& [path, value] = override;
    const bool replaced =
        path == "task" || path == task || path == absl::StrCat(task, ".", base.field);
    const bool other_task =
        absl::StartsWith(path, "task.") && !absl::StartsWith(path, absl::StrCat(task, "."));
    return replaced || (other_task && !value.has_null_value());
  });
}

}  // namespace

bool IsPath(const std::string& dataset) {
  return !absl::StartsWith(dataset, "datasets/") &&
         dataset.find_first_of("/.") != std::string::npos;
}

std::vector<DatasetPath> FindDatasetPaths(v1::ExperimentSpec* spec, Overrides* overrides) {
  std::vector<DatasetPath> found;
  for (const BaseDataset& base : FindBaseDatasets(spec)) {
    if (!IsPath(*base.name) || IsOverridden(*overrides, base)) continue;
    found.push_back(InFile(absl::StrCat("base.task.", base.kind, ".", base.field)));
    found.back().name = base.name;
  }
  for (auto& [path, files] : FilesOfBase(spec)) {
    if (!NamesFiles(*files) || overrides->count(path) > 0) continue;
    found.push_back(InFile(absl::StrCat("base.", path)));
    found.back().name = files;
    found.back().is_files = true;
  }
  for (int i = 0; i < spec->analyses_size(); ++i) {
    if (!IsPath(spec->analyses(i).inputs().dataset())) continue;
    found.push_back(InFile(absl::StrCat("analyses[", i, "].inputs.dataset")));
    found.back().name = spec->mutable_analyses(i)->mutable_inputs()->mutable_dataset();
  }
  const std::set<std::string> dataset_axes = CollectPathsOfAxes(spec, &found);
  for (int i = 0; i < spec->exclude_size(); ++i) {
    for (auto& [axis, value] : *spec->mutable_exclude(i)->mutable_where()) {
      if (dataset_axes.count(axis) == 0) continue;
      const std::string field = absl::StrCat("exclude[", i, "].where", reflect::Subscript(axis));
      CollectPaths("dataset", AsLabel(field), &value, &found);
    }
  }
  for (auto& [path, value] : *overrides) CollectPaths(path, OfOverride(path), &value, &found);
  return found;
}

}  // namespace ablate::yaml
