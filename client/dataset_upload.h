// Files of documents: hashed, and sent to a server that lacks them.
#ifndef ABLATE_CLIENT_DATASET_UPLOAD_H_
#define ABLATE_CLIENT_DATASET_UPLOAD_H_

#include <string>

#include "ablate/v1/dataset.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"

namespace ablate::client {

struct Upload {
  v1::Dataset dataset;
  bool sent = false;  // the server did not have it
};

// NOT_FOUND with the nearest name beside it, INVALID_ARGUMENT if it is no plain file or too large,
// PERMISSION_DENIED if it can't be read; else what the server says. Messages name `path`.
absl::StatusOr<Upload> UploadFile(Connection* connection, const std::string& path);

// The name that the server shows for a file: letters, digits and . _ -, first a letter or digit, at
// most 100 characters, of which 33 before the last dot: its end, if it has more.
std::string DisplayName(const std::string& path);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_DATASET_UPLOAD_H_
