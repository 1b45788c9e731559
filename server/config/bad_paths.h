// Tracks the fields below BaseSpec that have problems, so that only the checks that read them are
// skipped.
#ifndef ABLATE_SERVER_CONFIG_BAD_PATHS_H_
#define ABLATE_SERVER_CONFIG_BAD_PATHS_H_

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ablate::spec {

// Paths such as model.width, task or training.checkpoints[2].
using BadPaths = std::set<std::string>;

// Returns true if `path` is `root` or lies below it.
inline bool IsAtOrBelow(absl::string_view path, absl::string_view root) {
  if (!absl::ConsumePrefix(&path, root)) return false;
  return path.empty() || path.front() == '.' || path.front() == '[';
}

// Returns true if a bad path is one of `paths`, or lies above or below one.
inline bool AnyBad(const BadPaths& bad, std::initializer_list<absl::string_view> paths) {
  return std::any_of(bad.begin(), bad.end(), [&paths](const std::string& one) {
    return std::any_of(paths.begin(), paths.end(), [&one](absl::string_view path) {
      return IsAtOrBelow(one, path) || IsAtOrBelow(path, one);
    });
  });
}

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_BAD_PATHS_H_
