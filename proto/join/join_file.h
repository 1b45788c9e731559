// Join files: what `ablate.v1.JoinFile` is on disk, read and written by clients, workers and the
// server alike.
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

// INVALID_ARGUMENT unless every field is as join.proto says; the first that is not is named, with
// its value and what is allowed. No error here or below holds any of the token. All functions are
// thread-safe.
absl::Status CheckJoinFile(const v1::JoinFile& file);

// Any text is read or refused: INVALID_ARGUMENT if it is too long, not JSON of a JoinFile, has a
// field that is none of its, or a wrong one. Whether the token has expired is the server's to say.
absl::StatusOr<v1::JoinFile> ParseJoinFile(absl::string_view text);

// Errors name the file: NOT_FOUND, FAILED_PRECONDITION if others may read it (its mode has one of
// the bits 077) or it is no regular file of at most kMaxJoinFileBytes, and ParseJoinFile's.
absl::StatusOr<v1::JoinFile> ReadJoinFile(const std::string& path);

// What would keep WriteJoinFile from making that file, for those who look before there is a token:
// ALREADY_EXISTS, or NOT_FOUND without its folder. OK for an empty path.
absl::Status CheckNewFile(const std::string& path);

// Makes a file of mode 0600. ALREADY_EXISTS rather than to overwrite one: its token could not be
// had again. Errors otherwise as CheckJoinFile's.
absl::Status WriteJoinFile(const std::string& path, const v1::JoinFile& file);

}  // namespace ablate::join

#endif  // ABLATE_PROTO_JOIN_JOIN_FILE_H_
