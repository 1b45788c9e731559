// Reads and writes join files, the form of `ablate.v1.JoinFile` on disk, for clients, workers and
// the server.
#ifndef ABLATE_PROTO_JOIN_JOIN_FILE_H_
#define ABLATE_PROTO_JOIN_JOIN_FILE_H_

#include <cstddef>
#include <string>

#include "ablate/v1/join.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::join {

inline constexpr size_t kMaxJoinFileBytes = 64 << 10;

// Returns INVALID_ARGUMENT unless every field is as join.proto says. The error names the first
// wrong field, with its value and what is allowed. No error of the functions in this file contains
// any part of the token. All functions are thread-safe.
absl::Status CheckJoinFile(const v1::JoinFile& file);

// Parses any text. Returns INVALID_ARGUMENT if it is too long, isn't JSON of a JoinFile, or has an
// unknown or wrong field. The server checks whether the token has expired.
absl::StatusOr<v1::JoinFile> ParseJoinFile(absl::string_view text);

// Reads a file. Errors name the file: NOT_FOUND; FAILED_PRECONDITION if others may read it (its
// mode has one of the bits 077) or it isn't a regular file of at most kMaxJoinFileBytes; and
// ParseJoinFile's.
absl::StatusOr<v1::JoinFile> ReadJoinFile(const std::string& path);

// Returns the error with which WriteJoinFile would fail, for callers that check before they create
// a token: ALREADY_EXISTS, or NOT_FOUND without its folder. OK for an empty path.
absl::Status CheckNewFile(const std::string& path, bool replace = false);

// Creates a file of mode 0600. Returns ALREADY_EXISTS instead of overwriting a file, because its
// token couldn't be recovered; with `replace` a whole file takes its place. Other errors as
// CheckJoinFile's.
absl::Status WriteJoinFile(const std::string& path, const v1::JoinFile& file, bool replace = false);

}  // namespace ablate::join

#endif  // ABLATE_PROTO_JOIN_JOIN_FILE_H_
