// Stores the shared servers that this user has logged in to: their join files, by name, and the one
// that commands use. In $XDG_CONFIG_HOME/ablate or ~/.config/ablate, readable only by this user.
// Not thread-safe.
#ifndef ABLATE_CLIENT_LOGINS_H_
#define ABLATE_CLIENT_LOGINS_H_

#include <string>
#include <vector>

#include "ablate/v1/join.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/private_folder.h"

namespace ablate::client {

// Name of the server on this machine among the names of logins.
inline constexpr char kPersonal[] = "personal";

class Logins {
 public:
  // FAILED_PRECONDITION if the environment names no folder.
  static absl::StatusOr<Logins> Of(const process::Environment& environment);

  // Accepts letters, digits and . _ -, at most 64, but not kPersonal. INVALID_ARGUMENT.
  static absl::Status CheckName(const std::string& name);

  // Stores a server by this name and makes it the one that commands use. Replaces an earlier login
  // to the same server; ALREADY_EXISTS if another server has the name.
  absl::Status Add(const std::string& name, const v1::JoinFile& join);
  // NOT_FOUND lists the names.
  absl::StatusOr<v1::JoinFile> Find(const std::string& name) const;
  // Deletes it. NOT_FOUND.
  absl::Status Remove(const std::string& name);
  // Ascending.
  std::vector<std::string> Names() const;
  // Returns the name that was added last and not removed; empty if there is none.
  std::string Current() const;

 private:
  explicit Logins(std::string folder);
  std::string FileOf(const std::string& name) const;

  std::string folder_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_LOGINS_H_
