#include "server/imports/setting_paths.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace ablate::imports {
namespace {

constexpr size_t kMaxPart = 90;  // bytes
constexpr size_t kMostParts = 16;

// Replaces what a setting's name can't have.
std::string NameOfPart(absl::string_view part) {
  std::string name;
  for (const char c : part) name.push_back(absl::ascii_isalnum(c) || c == '-' ? c : '_');
  if (name.empty() || (!absl::ascii_isalpha(name.front()) && name.front() != '_')) {
    name.insert(0, "_");
  }
  return name.substr(0, kMaxPart);
}

}  // namespace

std::string SettingPaths::Add(const std::string& key) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(key, '.')) parts.push_back(NameOfPart(part));
  std::string path = absl::StrJoin(parts, ".");
  // A message has at most 100 levels, and each part takes three.
  if (parts.size() > kMostParts || Clashes(path)) path = absl::StrReplaceAll(path, {{".", "_"}});
  std::string unique = path;
  for (int i = 2; Clashes(unique); ++i) unique = absl::StrCat(path, "_", i);
  paths_.insert(unique);
  return unique;
}

bool SettingPaths::Clashes(const std::string& path) const {
  const auto below = paths_.lower_bound(absl::StrCat(path, "."));
  if (below != paths_.end() && absl::StartsWith(*below, absl::StrCat(path, "."))) return true;
  for (size_t end = path.size(); end != std::string::npos; end = path.rfind('.', end - 1)) {
    if (paths_.count(path.substr(0, end)) > 0) return true;
  }
  return false;
}

}  // namespace ablate::imports
