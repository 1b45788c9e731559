// Finds data sets that an experiment names by a path, uploads those that the server lacks, and
// replaces the paths by names on the server.
#ifndef ABLATE_CLIENT_SUBMIT_DATASET_FILES_H_
#define ABLATE_CLIENT_SUBMIT_DATASET_FILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ablate/v1/dataset.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/submit/experiment_file.h"

namespace ablate::client {

struct Upload {
  v1::Dataset dataset;
  bool sent = false;  // the server did not have it
};

// Users who see an uploaded data set.
enum class Audience {
  kEverybody,
  // Everybody, unless the server has it as our private data set. That one is used, so that nobody
  // publishes data by forgetting an option.
  kEverybodyUnlessPrivate,
  kOurselves,
};

// How long the server keeps an uploaded data set.
enum class Keep {
  kAlways,
  // An hour, unless an experiment uses it; until then only we see it.
  kIfUsed,
};

// Uploads the file, or the file that is made of a tokenizer's folder
// (base/tokenizer/tokenizer_files.h), unless the server has its bytes already in a public data set,
// or in a private one of ours if `audience` allows that. NOT_FOUND names the file with the most
// similar name, INVALID_ARGUMENT means that it is neither a plain file nor such a folder, or is too
// large, PERMISSION_DENIED that it can't be read; other errors are the server's. Messages name
// `path`. `before_upload` is called before bytes are sent. An upload that breaks is continued
// (client/upload.h).
using BeforeUpload = std::function<void(uint64_t bytes, bool is_private)>;
absl::StatusOr<Upload> UploadFile(Connection* connection, const Context& context,
                                  const std::string& path, Audience audience,
                                  Keep keep = Keep::kAlways,
                                  const BeforeUpload& before_upload = nullptr);

// Uploads a file that was made of the files at `path`, as UploadFile uploads a file.
absl::StatusOr<Upload> UploadBytes(Connection* connection, const Context& context,
                                   const std::string& path, std::string bytes, Audience audience,
                                   Keep keep = Keep::kAlways,
                                   const BeforeUpload& before_upload = nullptr);

// Returns the name of the data set that UploadFile would use with Keep::kIfUsed without sending;
// empty if it would send the file. Errors as of UploadFile.
absl::StatusOr<std::string> FindFile(Connection* connection, const std::string& path,
                                     Audience audience);

// Returns the name that the server shows for a file: letters, digits and . _ -, first a letter or
// digit, at most 100 characters, at most 33 of them before the last dot. The end of a longer name
// is kept.
std::string DisplayName(const std::string& path);

// A path of an experiment.
struct NamedPath {
  std::string path;  // relative to the working folder; of a program's files as written
  bool is_files = false;
};

// Replaces each path, relative to the file's folder, by the name that `upload` returns. Each file
// is uploaded once. An experiment file may come from someone else: a path in it that leads out of
// its folder, also by links, or to a hidden file is a problem unless it is within `allowed`, files
// or folders named on the command line (client/submit/allowed_files.h). The same holds for the
// files of a tokenizer's folder that --set names. A problem has the position of the path. A path
// with a problem, or for which `upload` returns an empty name, becomes unread. Returns errors that
// aren't about a file, such as UNAVAILABLE.
// `upload` makes these checks itself for a program's files.
absl::Status ReplaceDatasetPaths(
    ExperimentFile* file, Overrides* overrides, const std::vector<std::string>& allowed,
    const std::function<absl::StatusOr<std::string>(const NamedPath& named)>& upload);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_DATASET_FILES_H_
