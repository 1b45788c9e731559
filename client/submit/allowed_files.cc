#include "client/submit/allowed_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

// The path without links, of a file that need not be there.
fs::path Real(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path.empty() ? "." : path), error);
  return error ? fs::path() : real;
}

// Returns true if `path` is `root` or below it, both without links.
bool IsWithin(const fs::path& path, const fs::path& root) {
  return !root.empty() &&
         std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// Returns true if `path`, which is below `root`, is hidden or in a hidden folder, such as .ssh.
bool IsHidden(const fs::path& path, const fs::path& root) {
  const fs::path below = path.lexically_relative(root);
  if (below == ".") return false;
  return std::any_of(below.begin(), below.end(),
                     [](const fs::path& part) { return absl::StartsWith(part.string(), "."); });
}

}  // namespace

absl::Status CheckIsAllowed(const std::string& path, const std::string& folder,
                            absl::string_view called, const std::vector<std::string>& allowed) {
  const fs::path real = Real(path), root = Real(folder);
  const auto holds = [&real](const std::string& of) { return IsWithin(real, Real(of)); };
  const bool inside = IsWithin(real, root), hidden = inside && IsHidden(real, root);
  if ((inside && !hidden) || std::any_of(allowed.begin(), allowed.end(), holds)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(real.empty() ? path : real.string(), hidden ? " is hidden" : " is outside ",
                   hidden ? "" : called, ", and would be uploaded; to allow that, add ",
                   kAllowOption, " ", path));
}

absl::Status CheckFilesIn(const std::string& folder, const std::vector<std::string>& names,
                          const std::vector<std::string>& allowed) {
  for (const std::string& name : names) {
    RETURN_IF_ERROR(CheckIsAllowed(fs::path(folder) / name, folder, "the folder", allowed));
  }
  return absl::OkStatus();
}

}  // namespace ablate::client
