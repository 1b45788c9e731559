// Reads settings from the names of runs by a pattern, such as {norm}-s{seed}.
#ifndef ABLATE_SERVER_IMPORTS_NAME_PATTERN_H_
#define ABLATE_SERVER_IMPORTS_NAME_PATTERN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::imports {

class NamePattern {
 public:
  // Reads a pattern. `{KEY}` stands for one or more characters other than a slash, and for digits
  // if it is the key of the seed. INVALID_ARGUMENT.
  static absl::StatusOr<NamePattern> Parse(absl::string_view text, absl::string_view seed);

  // Returns the value of each key. INVALID_ARGUMENT unless the name matches in exactly one way.
  absl::StatusOr<std::map<std::string, std::string>> Match(absl::string_view name) const;

 private:
  struct Part {
    std::string literal;  // or, if empty:
    std::string key;
    bool digits = false;
  };
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_NAME_PATTERN_H_
