// Downloads file sets (base/file_set.h), to memory or into a folder.
#ifndef ABLATE_CLIENT_FILE_SET_FOLDER_H_
#define ABLATE_CLIENT_FILE_SET_FOLDER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "client/download.h"
#include "client/output/part_file.h"

namespace ablate::client {

// Downloads a file set to memory. INVALID_ARGUMENT if it is too large; other errors as of Receive.
absl::StatusOr<std::string> ReceiveFileSet(const RemoteFile& remote, const ReadFrom& read,
                                           const Sleep& sleep);

// Downloads a file set and writes its files, complete or none of them. A path that begins with
// `prefix` is written without it. With output.force, an existing folder is replaced if ablate wrote
// it, which the file .ablate in it shows. Returns the number of files. INVALID_ARGUMENT if it isn't
// a file set; other errors as of Receive and PartFolder.
absl::StatusOr<size_t> WriteFileSet(const RemoteFile& remote, const ReadFrom& read,
                                    const Sleep& sleep, const std::string& prefix,
                                    const Output& output);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FILE_SET_FOLDER_H_
