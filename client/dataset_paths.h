// Data sets that an experiment names by a path: found, uploaded, and replaced by their names on the
// server.
#ifndef ABLATE_CLIENT_DATASET_PATHS_H_
#define ABLATE_CLIENT_DATASET_PATHS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/experiment_file.h"
#include "client/overrides.h"

namespace ablate::client {

// A place that names a data set by a path.
struct DatasetPath {
  std::string
      field;  // base.task.documents.dataset, axes[0].values[1], …; a path below base for --set
  std::string* name = nullptr;
  bool from_command_line = false;
  bool is_label = false;  // labels have no '/': the id alone stands for the data set
};

// Whether a data set's name means a file: it has a '/' or '.' and does not begin with `datasets/`.
bool IsPath(const std::string& dataset);

// Every such place in base, axes, settings, exclusions and overrides.
std::vector<DatasetPath> FindDatasetPaths(v1::ExperimentSpec* spec, Overrides* overrides);

// Replaces each path, relative to the file's folder, by what `upload` makes of it; files that are
// named several times are uploaded once. Problems stand at the place that names the file. An error
// is one that is not about a file, such as UNAVAILABLE.
absl::Status ReplaceDatasetPaths(
    ExperimentFile* file, Overrides* overrides,
    const std::function<absl::StatusOr<std::string>(const std::string& path)>& upload);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_DATASET_PATHS_H_
