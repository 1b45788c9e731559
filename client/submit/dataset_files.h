// Files of data: uploaded to a server that lacks them, found in an experiment that names them
// by a path, and replaced there by their names on the server.
#ifndef ABLATE_CLIENT_SUBMIT_DATASET_FILES_H_
#define ABLATE_CLIENT_SUBMIT_DATASET_FILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ablate/v1/dataset.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/submit/experiment_file.h"

namespace ablate::client {

struct Upload {
  v1::Dataset dataset;
  bool sent = false;  // the server did not have it
};

// Who is to see a data set that is uploaded.
enum class Audience {
  kEverybody,
  // Everybody, unless it is there as a private one of ours alone: that is taken as it is, so that
  // nobody publishes their data by forgetting an option.
  kEverybodyUnlessPrivate,
  kOurselves,
};

// Uploads it unless the server has its bytes already, where we see them: in a public data set, or
// in a private one of ours, where `audience` does not rule that out. NOT_FOUND with the nearest
// name beside it, INVALID_ARGUMENT if it is no plain file or too large, PERMISSION_DENIED if it
// can't be read; else what the server says. Messages name `path`.
// `before_upload` is called once it is known that the bytes will be sent.
using BeforeUpload = std::function<void(uint64_t bytes, bool is_private)>;
absl::StatusOr<Upload> UploadFile(Connection* connection, const std::string& path,
                                  Audience audience, const BeforeUpload& before_upload = nullptr);

// The name of the data set that UploadFile would take as it is; empty if it would send the file.
// Errors as UploadFile's.
absl::StatusOr<std::string> FindFile(Connection* connection, const std::string& path,
                                     Audience audience);

// The name that the server shows for a file: letters, digits and . _ -, first a letter or digit, at
// most 100 characters, of which 33 before the last dot: its end, if it has more.
std::string DisplayName(const std::string& path);

// A place that names a data set by a path.
struct DatasetPath {
  // base.task.documents.dataset, axes[0].values[1], …; a path below base for --set.
  std::string field;
  std::string* name = nullptr;
  bool from_command_line = false;
  bool is_label = false;  // labels have no '/': the id alone stands for the data set
};

// Whether a data set's name means a file: it has a '/' or '.' and does not begin with `datasets/`.
bool IsPath(const std::string& dataset);

// Every such place in base, axes, settings, exclusions and overrides.
std::vector<DatasetPath> FindDatasetPaths(v1::ExperimentSpec* spec, Overrides* overrides);

// Replaces each path, relative to the file's folder, by what `upload` makes of it; files that are
// named several times are uploaded once. An experiment file may come from a stranger, so a path in
// it that leads out of its folder, links followed, or to a hidden file is a problem, unless one of
// `allowed`, files or folders named on the command line, holds it. Problems stand at the place that
// names the file. A place with a problem, or for which `upload` returns an empty name, becomes
// unread. An error is one that is not about a file, such as UNAVAILABLE.
absl::Status ReplaceDatasetPaths(
    ExperimentFile* file, Overrides* overrides, const std::vector<std::string>& allowed,
    const std::function<absl::StatusOr<std::string>(const std::string& path)>& upload);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_DATASET_FILES_H_
