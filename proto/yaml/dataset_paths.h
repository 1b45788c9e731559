// Finds the fields of an experiment that name a data set by a path.
#ifndef ABLATE_PROTO_YAML_DATASET_PATHS_H_
#define ABLATE_PROTO_YAML_DATASET_PATHS_H_

#include <map>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::yaml {

// Paths below base of a program's files and data, whose values are data sets, too.
inline constexpr char kFilesPath[] = "program.files";
inline constexpr char kDataPath[] = "program.data";

// Returns true for these two.
inline bool IsFilesPath(absl::string_view path) { return path == kFilesPath || path == kDataPath; }

// A place that names a data set by a path.
struct DatasetPath {
  // base.task.documents.dataset, axes[0].values[1], …; of an override its path below base.
  std::string field;
  std::string* name = nullptr;
  bool is_override = false;
  bool is_label = false;  // labels have no '/': the id alone stands for the data set
  bool is_files = false;  // it names a program's files, by paths and patterns divided by commas
};

// Returns true if a data set's name means a file: it has a '/' or '.' and doesn't begin with
// `datasets/`.
bool IsPath(const std::string& dataset);

// Values that replace those of base, by path.
using Overrides = std::map<std::string, google::protobuf::Value>;

// Returns every such place in base, analyses, axes, settings, exclusions and overrides.
std::vector<DatasetPath> FindDatasetPaths(v1::ExperimentSpec* spec, Overrides* overrides);

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_DATASET_PATHS_H_
