// Servers elsewhere that this user has logged in to: their join files, by name, and which of them
// commands talk to. In $XDG_CONFIG_HOME/ablate or ~/.config/ablate, for this user's eyes alone. Not
// thread-safe.
#ifndef ABLATE_CLIENT_LOGINS_H_
#define ABLATE_CLIENT_LOGINS_H_

#include <string>
#include <vector>

#include "ablate/v1/join.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/private_folder.h"

namespace ablate::client {

// What names the server on this machine where others are known.
inline constexpr char kPersonal[] = "personal";

class Logins {
 public:
  // FAILED_PRECONDITION if the environment says no folder.
  static absl::StatusOr<Logins> Of(const process::Environment& environment);

  // Letters, digits and . _ -, at most 64, but not kPersonal. INVALID_ARGUMENT.
  static absl::Status CheckName(const std::string& name);

  // Keeps a server by this name and makes it the one that commands talk to. It takes the place of
  // the same server's earlier login; ALREADY_EXISTS if another server has the name.
  absl::Status Add(const std::string& name, const v1::JoinFile& join);
  // NOT_FOUND names those that there are.
  absl::StatusOr<v1::JoinFile> Find(const std::string& name) const;
  // Forgets it. NOT_FOUND.
  absl::Status Remove(const std::string& name);
  // Ascending.
  std::vector<std::string> Names() const;
  // The one that was added last and was not removed; empty if there is none.
  std::string Current() const;

 private:
  explicit Logins(std::string folder);
  std::string FileOf(const std::string& name) const;

  std::string folder_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_LOGINS_H_
