// Random suffixes and messages about ids.
#include "storage/sqlite/ids.h"

#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ablate::storage {

std::string NewExperimentName(absl::string_view title) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::random_device device;
  std::string name = absl::StrCat(title, "-");
  for (int i = 0; i < 4; ++i) name.push_back(kAlphabet[device() % 32]);
  return name;
}

std::string PrefixEnd(absl::string_view prefix) { return absl::StrCat(prefix, "\xff"); }

absl::Status NotFound(absl::string_view what, absl::string_view id) {
  return absl::NotFoundError(
      absl::StrCat("there is no ", what, " '", absl::CHexEscape(id.substr(0, 200)), "'"));
}

}  // namespace ablate::storage
