#include "server/experiment/writes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/read.h"

namespace ablate::spec {
namespace {

constexpr char kAllowed[] = "one axis or override for a path and all below it";

void Report(const Claim& earlier, const Claim& later, Problems* problems) {
  const std::string what = earlier.path == later.path
                               ? absl::StrCat(later.path, " is also written by ", earlier.source)
                               : absl::StrCat(later.path, " and ", earlier.path, ", written by ",
                                              earlier.source, ", exclude each other");
  problems->Add(later.source, later.path, what, kAllowed);
}

// Returns each prefix of a path, itself included: model, model.norm, model.norm.eps.
std::vector<std::string> Prefixes(const std::string& path) {
  std::vector<std::string> prefixes;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    prefixes.push_back(path.substr(0, dot));
  }
  prefixes.push_back(path);
  return prefixes;
}

// The prefix of `path` that is a member of a oneof, and the message around it; empty if there is
// none, or no such path.
struct Choice {
  std::string message;
  std::string member;
};

Choice ChoiceOf(const std::string& path) {
  const google::protobuf::Descriptor* type = v1::BaseSpec::descriptor();
  std::string above;
  for (const std::string& prefix : Prefixes(path)) {
    const std::string name = prefix.substr(above.empty() ? 0 : above.size() + 1);
    const auto* field = type == nullptr ? nullptr : type->FindFieldByName(name);
    if (field == nullptr) return {};
    if (field->real_containing_oneof() != nullptr) return {above, prefix};
    type = field->message_type();
    above = prefix;
  }
  return {};
}

// Claims by the paths that they take, one for each writer.
using Taken = std::map<std::string, std::vector<size_t>>;

}  // namespace

std::string WrittenBy(const std::vector<Write>& writes, const std::string& path) {
  for (const Write& write : writes) {
    if (!absl::StartsWith(path, write.path)) continue;
    const absl::string_view rest = absl::string_view(path).substr(write.path.size());
    if (rest.empty() || rest.front() == '.' || rest.front() == '[') {
      return absl::StrCat(write.source, rest);
    }
  }
  return "";
}

Source Sources::Find(const std::string& path, const v1::BaseSpec& merged) const {
  for (const std::vector<Write>* writes : points_) {
    std::string source = WrittenBy(*writes, path);
    if (!source.empty()) return {Rank::kAxis, std::move(source)};
  }
  std::string source = WrittenBy(overrides_, path);
  if (!source.empty()) return {Rank::kOverride, std::move(source)};
  if (absl::StartsWith(path, "settings.")) return {Rank::kBase, absl::StrCat("base.", path)};
  // A path may end in an element of a list.
  const reflect::FieldPath field(merged.GetDescriptor(), path.substr(0, path.find('[')));
  return {field.IsSet(merged) ? Rank::kBase : Rank::kDefault, absl::StrCat("base.", path)};
}

bool NamesField(const std::string& path) {
  v1::BaseSpec scratch;
  google::protobuf::Value null;
  null.set_null_value(google::protobuf::NULL_VALUE);
  std::vector<Problem> problems;
  reflect::SetPath(path, null, path, &scratch, &problems);
  return problems.empty();
}

void Apply(const std::vector<Write>& writes, v1::BaseSpec* base, std::vector<Problem>* problems) {
  for (const Write& write : writes) {
    reflect::SetPath(write.path, write.value, write.source, base, problems);
  }
}

std::vector<Conflict> FindConflicts(const std::vector<Claim>& claims) {
  std::vector<Conflict> conflicts;
  const auto add = [&conflicts](size_t i, size_t j) {
    conflicts.push_back({std::min(i, j), std::max(i, j)});
  };
  Taken by_path, by_choice;
  std::set<std::pair<std::string, int>> seen;
  std::vector<size_t> distinct;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (!seen.emplace(claims[i].path, claims[i].writer).second) continue;
    distinct.push_back(i);
    by_path[claims[i].path].push_back(i);
    const Choice choice = ChoiceOf(claims[i].path);
    if (!choice.member.empty()) by_choice[choice.message].push_back(i);
  }
  for (const size_t i : distinct) {
    const Claim& claim = claims[i];
    for (const std::string& prefix : Prefixes(claim.path)) {
      const auto found = by_path.find(prefix);
      if (found == by_path.end()) continue;
      for (const size_t j : found->second) {
        if (claims[j].writer != claim.writer) add(i, j);
      }
    }
    const Choice choice = ChoiceOf(claim.path);
    if (choice.member.empty()) continue;
    for (const size_t j : by_choice[choice.message]) {
      const bool other_member = ChoiceOf(claims[j].path).member != choice.member;
      if (other_member && claims[j].writer != claim.writer) add(i, j);
    }
  }
  return conflicts;
}

void CheckClaims(const std::vector<Claim>& claims, Problems* problems) {
  for (const auto& [earlier, later] : FindConflicts(claims)) {
    Report(claims[earlier], claims[later], problems);
  }
}

}  // namespace ablate::spec
